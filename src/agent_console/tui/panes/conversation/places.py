"""Where in a conversation somebody wants to go, as it is typed: a seq, a time, how long ago, a run."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from agent_console.domain.errors import ConsoleError, Invalid
from agent_console.domain.ids import RunId

LARGEST_SEQ = 2**63 - 1
_SEQ = re.compile(r"#?\s*(\d{1,19})")
_AGO = re.compile(r"(\d{1,6})\s*([smhd])(?:\s+ago)?")
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
EXAMPLES = "1204, 02:10, 2026-03-01 02:10, 40m, run_…"


@dataclass(frozen=True)
class Place:
    """One of the three."""

    seq: int | None = None
    time: datetime | None = None
    run_id: RunId | None = None


def place_of(text: str, now: datetime) -> Place:
    """Times are in UTC; a time of day is the last one that has been."""
    words = text.strip()
    if (found := _SEQ.fullmatch(words)) and int(found[1]) <= LARGEST_SEQ:
        return Place(seq=int(found[1]))
    if found := _AGO.fullmatch(words):
        return Place(time=now - timedelta(seconds=int(found[1]) * _SECONDS[found[2]]))
    if words.lower().startswith("run_"):
        return Place(run_id=_run(words))
    return Place(time=_time(words, now))


def _run(words: str) -> RunId:
    try:
        return RunId.parse(words)
    except ConsoleError as error:
        raise Invalid(error.message, hint=error.hint) from error


def _time(words: str, now: datetime) -> datetime:
    try:
        if found := _CLOCK.fullmatch(words):
            hour, minute, second = (int(part or 0) for part in found.groups())
            today = now.astimezone(UTC).replace(hour=hour, minute=minute, second=second, microsecond=0)
            return today if today <= now else today - timedelta(days=1)
        given = datetime.fromisoformat(words)
    except ValueError as error:
        raise Invalid("That is no place in a thread.", hint=f"Type one such as {EXAMPLES}.") from error
    return given if given.tzinfo is not None else given.replace(tzinfo=UTC)
