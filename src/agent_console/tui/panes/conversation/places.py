"""Where in a conversation somebody wants to go, as it is typed: a seq, a time, how long ago, a run."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from agent_console.domain.errors import Invalid
from agent_console.domain.ids import RunId
from agent_console.tui.panes.typed import time_ago, time_of

LARGEST_SEQ = 2**63 - 1
_SEQ = re.compile(r"#?\s*(\d{1,19})")
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?")
EXAMPLES = "1204, 02:10, 2026-03-01 02:10, 40m, run_…"


@dataclass(frozen=True)
class Place:
    """One of the three."""

    seq: int | None = None
    time: datetime | None = None
    run_id: RunId | None = None


def place_of(text: str, now: datetime) -> Place:
    """Times are in UTC; a time of day is the last one that has been. What is no place raises a ConsoleError."""
    words = text.strip()
    if (found := _SEQ.fullmatch(words)) and int(found[1]) <= LARGEST_SEQ:
        return Place(seq=int(found[1]))
    if words.lower().startswith("run_"):
        return Place(run_id=RunId.parse(words))
    time = time_ago(words, now) or _time_of_day(words, now) or time_of(words)
    if time is None:
        raise Invalid("That is no place in a thread.", hint=f"Type one such as {EXAMPLES}.")
    return Place(time=time)


def _time_of_day(words: str, now: datetime) -> datetime | None:
    if (found := _CLOCK.fullmatch(words)) is None:
        return None
    hour, minute, second = (int(part or 0) for part in found.groups())
    try:
        today = now.astimezone(UTC).replace(hour=hour, minute=minute, second=second, microsecond=0)
    except ValueError:
        return None
    return today if today <= now else today - timedelta(days=1)
