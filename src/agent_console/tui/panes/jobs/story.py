"""The story of a job, which is also its live output: its last lines, and from then on only what is new."""

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

LEVELS = (None, EventLevel.WARN, EventLevel.ERROR)
WORDS = {EventLevel.INFO: "info or worse", EventLevel.WARN: "warn or error", EventLevel.ERROR: "error"}
TITLE = "story"

COLUMNS = (
    Column("at", "At (UTC)", 14, min_width=14),
    Column("level", "Level", 7, min_width=7),
    Column("message", "Message", None, min_width=10),
)


class StorySoFar(Record):
    """The last lines that were read, whether there are others before them, and whether more follow.

    What came while nobody follows is counted, and kept as far as it could be shown.
    """

    lines: tuple[JobEvent, ...] = ()
    earlier: bool = False
    goes_on: bool = False
    unseen: tuple[JobEvent, ...] = ()
    unseen_count: int = 0

    @property
    def last_seq(self) -> int | None:
        read = self.unseen or self.lines
        return read[-1].seq if read else None

    def followed_by(self, page: Page[JobEvent], *, following: bool = True) -> "StorySoFar":
        lines = self.unseen + page.items
        goes_on = page.next is not None
        if not following:
            count = self.unseen_count + len(page.items)
            return self.model_copy(update={"goes_on": goes_on, "unseen": lines[-SHOWN:], "unseen_count": count})
        lines = self.lines + lines
        earlier = self.earlier or len(lines) > SHOWN or self.unseen_count > len(self.unseen)
        return StorySoFar(lines=lines[-SHOWN:], earlier=earlier, goes_on=goes_on)


@dataclass(frozen=True)
class StoryPart(DetailPart):
    """Lines are only ever added, so a story that is known is only asked for what came after it.

    Of a `level` it tells only lines that are so bad or worse. While nobody is `following`, new lines are counted
    and the others stay where they are.
    """

    level: EventLevel | None = None
    following: bool = True

    async def fetch(self, link: Link, record: Any, known: BaseModel | None) -> StorySoFar:
        if not isinstance(known, StorySoFar) or (known.last_seq is None and self.following):
            last = await link.call(
                JOBS_EVENTS, JobEventQuery(job_id=record.id, newest=True, limit=SHOWN, level=self.level)
            )
            return StorySoFar(lines=tuple(reversed(last.items)), earlier=last.next is not None)
        story = known
        for _ in range(PAGES_AT_ONCE):
            asked = JobEventQuery(
                job_id=record.id, after_seq=story.last_seq or 0, limit=EVENTS_LIMIT_MAX, level=self.level
            )
            story = story.followed_by(await link.call(JOBS_EVENTS, asked), following=self.following)
            if not story.goes_on:
                break
        return story

    def worse(self) -> "StoryPart":
        """The next level: everything, then what is worth a look, then what went wrong."""
        level = LEVELS[(LEVELS.index(self.level) + 1) % len(LEVELS)]
        return story_part(level, following=self.following)

    def paused(self) -> "StoryPart":
        return story_part(self.level, following=not self.following)


def _story(story: StorySoFar, job: Job, _now: datetime) -> tuple[SheetPart, ...]:
    rows = tuple(_line(event) for event in reversed(story.lines))
    remarks: list[SheetPart] = []
    if story.unseen_count:
        remarks.append(Remark(system_text(f"‖ {story.unseen_count:,} new; p follows again", "$text-warning")))
    if story.goes_on:
        remarks.append(Remark(system_text("Newer lines are being read …", "$text-warning")))
    if rows:
        remarks.append(Listing(COLUMNS, rows))
    if story.earlier:
        words = f"Earlier lines: agent-console jobs events {job.id}"
        remarks.append(Remark(system_text(words, "$foreground-muted")))
    return tuple(remarks)


def story_text(story: StorySoFar) -> str:
    """The lines that are shown, oldest first, as text that is harmless wherever it is pasted."""
    return "\n".join("  ".join(cell.plain for cell in _line(event)) for event in story.lines)


def _line(event: JobEvent) -> tuple[Content, ...]:
    glyph, style = LEVEL[event.level]
    who = f"{event.created_by}: " if event.created_by else ""
    return (
        system_text(f"{event.created_at.astimezone(UTC):%m-%d %H:%M:%S}", "$foreground-muted"),
        system_text(f"{glyph} {event.level.value}", style),
        agent_text(f"{who}{redact(event.message[:MESSAGE_SHOWN])}", limit=MESSAGE_SHOWN),
    )


def _hint(level: EventLevel | None, *, following: bool) -> str:
    which = "" if level is None else f", only {WORDS[level]}"
    return f"newest first, times in UTC{which}{'' if following else ', ‖ paused'}"


def story_part(level: EventLevel | None = None, *, following: bool = True) -> StoryPart:
    return StoryPart(
        title=TITLE,
        hint=_hint(level, following=following),
        topics=frozenset(),
        own_topics=frozenset({Topic.JOBS}),
        operation=JOBS_EVENTS,
        asked=lambda job: JobEventQuery(job_id=job.id, level=level),
        shown=_story,
        nothing="Nothing was told of it." if level is None else f"No line is {WORDS[level]}.",
        level=level,
        following=following,
    )


STORY = story_part()
