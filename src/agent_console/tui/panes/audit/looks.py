"""How an act of the audit trail looks: as a row, and whole."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from pydantic import JsonValue
from textual.content import Content

from agent_console.domain.audit_trail import AuditRow
from agent_console.domain.errors import WrongId
from agent_console.domain.ids import AgentId, ApprovalId, Id, JobId, RouteId, RunId, ThreadId, UserId
from agent_console.domain.kinds import ActorType, Decision
from agent_console.domain.records import shown_time
from agent_console.domain.spans import ago
from agent_console.repository.operations.fields import shown_value
from agent_console.tui.agent_text import agent_text, system_text
from agent_console.tui.facts import Fact, FactSheet, Heading, Remark, SheetPart
from agent_console.tui.widgets.virtual_table_columns import Column

COLUMNS = (
    Column("seal", "", 1, min_width=1),
    Column("time", "Time (UTC)", 11, min_width=11),
    Column("actor", "Who", None, min_width=12, narrow_to=9),
    Column("action", "Action", None, min_width=18, narrow_to=12),
    Column("resource", "On", None, min_width=13, narrow_to=9),
    Column("decision", "Decided", 7, min_width=7),
    Column("reason", "Why", None, min_width=8, drop=1),
)

ACTOR: dict[ActorType, str] = {ActorType.HUMAN: "◇", ActorType.AGENT: "◆", ActorType.SYSTEM: "·"}
ACTOR_WORDS = {ActorType.HUMAN: "a person", ActorType.AGENT: "an agent", ActorType.SYSTEM: "the system"}
DECISION: dict[Decision, tuple[str, str]] = {
    Decision.ALLOW: ("✓", "$text-success"),
    Decision.BLOCK: ("✗", "$text-error"),
    Decision.ERROR: ("▲", "$text-warning"),
}

# Which kind of id the things of a type have, where a key leads to them.
THINGS: Mapping[str, tuple[str, type[Id]]] = {
    "agents": ("agent", AgentId),
    "jobs": ("job", JobId),
    "threads": ("thread", ThreadId),
    "runs": ("run", RunId),
    "routes": ("route", RouteId),
    "approvals": ("approval", ApprovalId),
}
ID_END = 5


def time_text(at: datetime, now: datetime) -> str:
    """To the second on the day itself, else with the day."""
    shown, today = at.astimezone(UTC), now.astimezone(UTC).date()
    return f"{shown:%H:%M:%S}" if shown.date() == today else f"{shown:%m-%d %H:%M}"


def actor_text(act: AuditRow, me: UserId | None) -> Content:
    if me is not None and act.actor_user_id == me:
        return system_text(f"{ACTOR[act.actor_type]} you", "bold")
    return system_text(f"{ACTOR[act.actor_type]} ", "$foreground-muted") + agent_text(act.actor, limit=60)


def decision_text(act: AuditRow) -> Content:
    if act.decision is None:
        return system_text("")
    glyph, style = DECISION[act.decision]
    return system_text(f"{glyph} {act.decision.value}", style)


def resource_text(act: AuditRow) -> Content:
    """The type, and of an id its end: the ids of one day begin alike."""
    kind, _, name = act.resource_id.rpartition("_")
    shown = f"…{name[-ID_END:]}" if kind and len(name) == 26 else act.resource_id
    return agent_text(f"{act.resource_type} {shown}", limit=60)


def act_cells(act: AuditRow, now: datetime, me: UserId | None = None) -> tuple[Content, ...]:
    return (
        system_text("◌" if act.position is None else "", "$text-warning"),
        system_text(time_text(act.created_at, now), "$foreground-muted"),
        actor_text(act, me),
        agent_text(act.action, limit=60),
        resource_text(act),
        decision_text(act),
        agent_text(act.reason or "", "$foreground-muted", limit=200),
    )


def act_facts(act: AuditRow, now: datetime, me: UserId | None = None) -> FactSheet:
    decided = [Fact("decided", decision_text(act))] if act.decision else []
    reason = [Fact("because", agent_text(act.reason, limit=2000))] if act.reason else []
    mine = system_text(", that is you", "bold") if me is not None and act.actor_user_id == me else system_text("")
    facts: list[SheetPart] = [
        Heading(agent_text(act.action, "bold", limit=100)),
        Fact("id", system_text(str(act.id))),
        Fact("time", system_text(f"{shown_time(act.created_at)}, {ago(act.created_at, now)} ago")),
        Fact("who", actor_text(act, None) + system_text(f", {ACTOR_WORDS[act.actor_type]}") + mine),
        *decided,
        *reason,
        Fact("on", agent_text(f"{act.resource_type} {act.resource_id}", limit=400)),
    ]
    ids = {"their id": act.actor_user_id or act.actor_agent_id, "thread": act.thread_id, "run": act.run_id}
    facts += [Fact(label, system_text(str(value))) for label, value in ids.items() if value is not None]
    place = {"from": act.ip, "with": act.user_agent}
    facts += [Fact(label, agent_text(value, limit=300)) for label, value in place.items() if value]
    return FactSheet((*facts, *_metadata(act.metadata)))


def _metadata(metadata: Mapping[str, JsonValue]) -> tuple[SheetPart, ...]:
    if not metadata:
        return ()
    known = (Fact(name.replace("_", " "), _value(value)) for name, value in sorted(metadata.items()))
    return (Heading(system_text("what else was written down", "bold")), *known)


def _value(value: JsonValue) -> Content:
    return agent_text("-" if value is None else shown_value(value), limit=500)


def act_seal(act: AuditRow, _now: datetime) -> FactSheet:
    """Its place in the chain, and what proves it."""
    heading = Heading(system_text("seal", "bold"))
    own = Remark(system_text(f"own hash  {act.event_hash}"))
    number = Fact("seq", system_text(f"{act.seq:,}"))
    if act.position is None or act.seal is None:
        waits = Remark(system_text("◌ It is not sealed yet.", "$text-warning"))
        return FactSheet((heading, waits, number, own))
    place = Fact("position", system_text(f"{act.position:,}"))
    return FactSheet((heading, place, number, own, Remark(system_text(f"chain     {act.seal}"))))


def leading_to(noun: str) -> Callable[[AuditRow], object | None]:
    """Which thing of this noun an act is about: what was acted on, else what stands beside it."""
    resource_type, kind = THINGS[noun]

    def found(act: AuditRow) -> object | None:
        beside = {"threads": act.thread_id, "runs": act.run_id, "agents": act.actor_agent_id}.get(noun)
        acted_on = _parsed(kind, act.resource_id) if act.resource_type == resource_type else None
        return acted_on or beside or _parsed(kind, act.metadata.get(f"{resource_type}_id"))

    return found


def _parsed(kind: type[Id], word: object) -> Id | None:
    try:
        return kind.parse(word) if isinstance(word, str) else None
    except WrongId:
        return None
