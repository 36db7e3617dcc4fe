"""The story of a job: its last lines, and from then on only what is new."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel
from textual.content import Content

from agent_console.domain.job_events import EVENTS_LIMIT_MAX, JobEvent, JobEventQuery
from agent_console.domain.jobs import Job
from agent_console.domain.kinds import EventLevel
from agent_console.domain.records import Page, Record
from agent_console.domain.redact import redact
from agent_console.repository.operations.job_acts import JOBS_EVENTS
from agent_console.repository.port import Topic
from agent_console.tui.agent_text import agent_text, system_text
from agent_console.tui.facts import Listing, Remark, SheetPart
from agent_console.tui.link import Link
from agent_console.tui.panes.detail_part import DetailPart
from agent_console.tui.widgets.virtual_table_columns import Column

SHOWN = 20
PAGES_AT_ONCE = 10
MESSAGE_SHOWN = 500

LEVEL: dict[EventLevel, tuple[str, str]] = {
    EventLevel.INFO: ("·", "$foreground-muted"),
    EventLevel.WARN: ("!", "$text-warning"),
    EventLevel.ERROR: ("✗", "$text-error"),
}

COLUMNS = (
    Column("at", "At (UTC)", 14, min_width=14),
    Column("level", "Level", 7, min_width=7),
    Column("message", "Message", None, min_width=10),
)


class StorySoFar(Record):
    """The last lines that were read, whether there are others before them, and whether more follow."""

    lines: tuple[JobEvent, ...] = ()
    earlier: bool = False
    goes_on: bool = False

    @property
    def last_seq(self) -> int | None:
        return self.lines[-1].seq if self.lines else None

    def followed_by(self, page: Page[JobEvent]) -> "StorySoFar":
        lines = self.lines + page.items
        kept = lines[-SHOWN:]
        return StorySoFar(lines=kept, earlier=self.earlier or len(lines) > SHOWN, goes_on=page.next is not None)


@dataclass(frozen=True)
class StoryPart(DetailPart):
    """Lines are only ever added, so a story that is known is only asked for what came after it."""

    async def fetch(self, link: Link, record: Any, known: BaseModel | None) -> StorySoFar:
        if not isinstance(known, StorySoFar) or known.last_seq is None:
            last = await link.call(JOBS_EVENTS, JobEventQuery(job_id=record.id, newest=True, limit=SHOWN))
            return StorySoFar(lines=tuple(reversed(last.items)), earlier=last.next is not None)
        story = known
        for _ in range(PAGES_AT_ONCE):
            asked = JobEventQuery(job_id=record.id, after_seq=story.last_seq, limit=EVENTS_LIMIT_MAX)
            story = story.followed_by(await link.call(JOBS_EVENTS, asked))
            if not story.goes_on:
                break
        return story


def _story(story: StorySoFar, job: Job, _now: datetime) -> tuple[SheetPart, ...]:
    rows = tuple(_line(event) for event in reversed(story.lines))
    remarks: list[SheetPart] = []
    if story.goes_on:
        remarks.append(Remark(system_text("Newer lines are being read …", "$text-warning")))
    if rows:
        remarks.append(Listing(COLUMNS, rows))
    if story.earlier:
        words = f"Earlier lines: agent-console jobs events {job.id}"
        remarks.append(Remark(system_text(words, "$foreground-muted")))
    return tuple(remarks)


def _line(event: JobEvent) -> tuple[Content, ...]:
    glyph, style = LEVEL[event.level]
    who = f"{event.created_by}: " if event.created_by else ""
    return (
        system_text(f"{event.created_at.astimezone(UTC):%m-%d %H:%M:%S}", "$foreground-muted"),
        system_text(f"{glyph} {event.level.value}", style),
        agent_text(f"{who}{redact(event.message[:MESSAGE_SHOWN])}", limit=MESSAGE_SHOWN),
    )


STORY = StoryPart(
    title="story",
    hint="newest first, times in UTC",
    topics=frozenset(),
    own_topics=frozenset({Topic.JOBS}),
    operation=JOBS_EVENTS,
    asked=lambda job: JobEventQuery(job_id=job.id),
    shown=_story,
    nothing="Nothing was told of it.",
)
