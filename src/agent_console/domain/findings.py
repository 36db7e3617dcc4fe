"""A finding: what was looked at, what is the case, and what to do."""

from enum import StrEnum
from typing import ClassVar

from agent_console.domain.records import Record


class Verdict(StrEnum):
    FINE = "fine"
    WARNING = "warning"
    WRONG = "wrong"
    UNKNOWN = "unknown"

    @property
    def glyph(self) -> str:
        return {"fine": "✓", "warning": "!", "wrong": "✗", "unknown": "?"}[self.value]


class Finding(Record):
    columns: ClassVar[tuple[str, ...]] = ("verdict", "part", "what", "value", "advice")

    part: str
    what: str
    verdict: Verdict
    value: str
    advice: str = ""


def judged(part: str, what: str, value: str, *, wrong: str = "", warning: str = "") -> Finding:
    """Fine unless there is something to do: `wrong` and `warning` are what that is."""
    verdict = Verdict.WRONG if wrong else Verdict.WARNING if warning else Verdict.FINE
    return Finding(part=part, what=what, verdict=verdict, value=value, advice=wrong or warning)


def not_known(part: str, what: str, value: str, advice: str = "") -> Finding:
    return Finding(part=part, what=what, verdict=Verdict.UNKNOWN, value=value, advice=advice)
