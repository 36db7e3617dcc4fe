"""What somebody types to see only a part of the audit trail, and the same in words."""

import re
import shlex
from collections.abc import Mapping, Set
from datetime import datetime

from agent_console.domain.audit_trail import SHOWN_DAYS, AuditFilter
from agent_console.domain.errors import Invalid
from agent_console.domain.ids import AgentId, Id, UserId
from agent_console.domain.records import shown_time
from agent_console.tui.panes.audit.looks import THINGS
from agent_console.tui.panes.typed import request_of, time_ago, time_of

Seen = Mapping[str, Set[Id]]
"""Whose acts were seen so far, by name: several may go by one."""

HINT = "who: action: on: thread: run: decision: since: until:   such as who:me action:job. since:2h"
IDS_SHOWN = 3
_PART = re.compile(r"(?P<name>[a-z]+):(?P<value>.+)", re.DOTALL)
_PLAIN = {"action": "action", "thread": "thread_id", "run": "run_id", "decision": "decision"}


def read_filter(text: str, now: datetime, seen: Seen, me: UserId | None = None) -> AuditFilter:
    """Every part is `name:value`; names with blanks stand in quotes. Raises a ConsoleError with what to do."""
    wanted: dict[str, object] = {}
    for part in _parts(text):
        wanted |= _field(part, now, seen, me)
    return request_of(AuditFilter, wanted, HINT)


def _parts(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise Invalid("A quote is not closed.", hint=HINT) from error


def _field(part: str, now: datetime, seen: Seen, me: UserId | None) -> dict[str, object]:
    found = _PART.fullmatch(part)
    if found is None:
        raise Invalid(f"{part} does not say what it is to match.", hint=HINT)
    name, value = found["name"], found["value"]
    match name:
        case "who":
            return _who(value, seen, me)
        case "on":
            return _on(value)
        case "since" | "until":
            return {name: _moment(value, now)}
    if name not in _PLAIN:
        raise Invalid(f"There is no {name}: here.", hint=HINT)
    return {_PLAIN[name]: value}


def _who(value: str, seen: Seen, me: UserId | None) -> dict[str, object]:
    if value == "me" and me is not None:
        return {"actor_user_id": me}
    fields: dict[type[Id], str] = {AgentId: "actor_agent_id", UserId: "actor_user_id"}
    called_so = {who for name, known in seen.items() if name.casefold() == value.casefold() for who in known}
    if len(called_so) > 1:
        raise Invalid(f"{len(called_so)} go by the name {value}.", hint=f"Give the id: {_ids(called_so)}")
    for who in called_so:
        return {fields[type(who)]: who}
    for kind, field in fields.items():
        if value.startswith(f"{kind.prefix}_"):
            return {field: value}
    raise Invalid(f"No act of {value} is in the list so far.", hint="Give the id, usr_… or agt_….")


def _ids(of: Set[Id]) -> str:
    shown = sorted(map(str, of))
    return ", ".join(shown[:IDS_SHOWN]) + (" …" if len(shown) > IDS_SHOWN else "")


def _on(value: str) -> dict[str, object]:
    """A type such as job, or one thing by its id, which tells the type too: by both it is found at once."""
    for resource_type, kind in THINGS.values():
        if value.startswith(f"{kind.prefix}_"):
            return {"resource_type": resource_type, "resource_id": value}
    return {"resource_id" if "_" in value and len(value) > 26 else "resource_type": value}


def _moment(value: str, now: datetime) -> datetime:
    """So long ago, or a time."""
    if (moment := time_ago(value, now) or time_of(value)) is None:
        raise Invalid(f"{value} is no time.", hint="Such as since:2h or since:2026-03-01T03:00")
    return moment


def filter_words(
    wanted: AuditFilter, seen: Seen, me: UserId | None = None, *, any_time: str = f"last {SHOWN_DAYS} days"
) -> str:
    """What is searched, in words; `any_time` is what it means when no time was asked for."""
    names = {str(who): name for name, known in seen.items() for who in known} | (
        {str(me): "me"} if me is not None else {}
    )
    said = []
    for name, value in wanted:
        if value is None or name in ("since", "until", "limit", "after"):
            continue
        words = names.get(str(value), str(value))
        said.append(f"{_SAID.get(name, name)}:{words}")
    return "  ".join([*said, _span_words(wanted) or any_time])


_SAID = {
    "actor_user_id": "who",
    "actor_agent_id": "who",
    "resource_type": "on",
    "resource_id": "on",
    "thread_id": "thread",
    "run_id": "run",
}


def _span_words(wanted: AuditFilter) -> str:
    if wanted.since is not None and wanted.until is not None:
        return f"{shown_time(wanted.since)} to {shown_time(wanted.until)}"
    if wanted.since is not None:
        return f"since {shown_time(wanted.since)}"
    if wanted.until is not None:
        return f"{SHOWN_DAYS} days before {shown_time(wanted.until)}"
    return ""
