"""A part of a detail that is asked for on its own, and can fail on its own: the rest still shows."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import BaseModel

from agent_console.domain.records import Request
from agent_console.repository.operations import AnyOperation
from agent_console.repository.port import Change, Topic
from agent_console.tui.agent_text import agent_text, system_text
from agent_console.tui.facts import Heading, Remark, SheetPart
from agent_console.tui.link import Link

PROBLEM_SHOWN = 500


@dataclass(frozen=True)
class DetailPart:
    """`asked` makes the question from the record, or None when the record itself says that there is nothing.

    `shown` gets the answer, the record and the time; when it has nothing to show, `nothing` is said instead.
    Without words for that the part is left out where there is nothing to ask. A change of one of the
    `own_topics` counts only when it is about this very thing.
    """

    title: str
    topics: frozenset[Topic]
    operation: AnyOperation
    asked: Callable[[Any], Request | None]
    shown: Callable[[Any, Any, datetime], tuple[SheetPart, ...]]
    nothing: str
    hint: str = ""
    own_topics: frozenset[Topic] = frozenset()

    def is_touched_by(self, change: Change, row_id: str) -> bool:
        of_itself = change.topic in self.own_topics and change.id in (None, row_id)
        return of_itself or change.topic in self.topics or change.topic is Topic.EVERYTHING

    async def fetch(self, link: Link, record: Any, known: BaseModel | None) -> BaseModel | None:
        """The answer as it is now; `known` is the one before, for a part that only asks what came after it."""
        asked = self.asked(record)
        if asked is None:
            return None
        answer: BaseModel = await link.call(self.operation, asked)
        return answer


@dataclass(frozen=True)
class PartSoFar:
    """What is known of a part: the last answer is kept when it can't be had again."""

    part: DetailPart
    known: bool = False
    answer: BaseModel | None = None
    problem: str = ""

    def answered(self, answer: BaseModel | None) -> "PartSoFar":
        return PartSoFar(self.part, True, answer)

    def failed(self, problem: str) -> "PartSoFar":
        return PartSoFar(self.part, self.known, self.answer, problem)

    def sheet(self, record: object, now: datetime) -> tuple[SheetPart, ...]:
        if not self.part.nothing and self.part.asked(record) is None:
            return ()
        title = system_text(self.part.title, "bold") + system_text(f"   {self.part.hint}", "$foreground-muted")
        return (Heading(title.rstrip()), *self._problem(), *self._content(record, now))

    def _problem(self) -> tuple[SheetPart, ...]:
        if not self.problem:
            return ()
        words = "Could not be loaded again; this is the last known" if self.known else "Could not be loaded"
        return (Remark(agent_text(f"✗ {words}: {self.problem}", "$text-error", limit=PROBLEM_SHOWN)),)

    def _content(self, record: object, now: datetime) -> tuple[SheetPart, ...]:
        if not self.known or (self.answer is None and self.part.asked(record) is not None):
            return () if self.problem else (Remark(system_text("Loading …", "$foreground-muted")),)
        shown = () if self.answer is None else self.part.shown(self.answer, record, now)
        return shown or (Remark(system_text(self.part.nothing, "$foreground-muted")),)
