"""Who takes part in a thread, and what each may do there."""

from collections.abc import Sequence
from datetime import datetime

from textual.content import Content

from agent_console.domain.ids import ThreadId
from agent_console.domain.kinds import ParticipantType
from agent_console.domain.records import PAGE_LIMIT_MAX
from agent_console.domain.safe_text import shortened
from agent_console.domain.spans import ago
from agent_console.domain.threads import Participant, ParticipantQuery, Thread
from agent_console.repository.operations.threads import THREADS_PARTICIPANTS
from agent_console.repository.port import Topic
from agent_console.tui.agent_text import agent_text, system_text
from agent_console.tui.facts import Heading, Listing, Remark, SheetPart
from agent_console.tui.link import Link
from agent_console.tui.panes.derived import record_facts
from agent_console.tui.panes.list_kind import ListKind
from agent_console.tui.widgets.virtual_table_columns import Column

COLUMNS = (
    Column("kind", "Who", 9),
    Column("name", "Name", None, min_width=12),
    Column("read", "Read", 5),
    Column("write", "Write", 5),
    Column("share", "Share", 5),
    Column("by", "Let in by", 16, drop=1),
    Column("since", "Since", 7, align="right", drop=2),
)
KINDS = {
    ParticipantType.HUMAN: ("◆ person", "$text-accent"),
    ParticipantType.AGENT: ("● agent", "$text-success"),
}
SHEET_COLUMNS = (
    Column("kind", "Who", 9),
    Column("name", "Name", None, min_width=12),
    Column("rights", "Rights", 28),
)
NAME_SHOWN = 40
SHOWN = 30
PAGES = 5


def _right(given: bool) -> Content:
    return system_text("✓ yes" if given else "- no", "" if given else "$foreground-muted")


def participant_cells(one: Participant, now: datetime) -> tuple[Content, ...]:
    kind, style = KINDS[one.participant_type]
    return (
        system_text(kind, style),
        agent_text(one.name, limit=100),
        _right(one.can_read),
        _right(one.can_write),
        _right(one.can_share),
        agent_text(one.created_by or "-", "$foreground-muted", limit=60),
        system_text(ago(one.created_at, now), "$foreground-muted"),
    )


def participants_of(thread: Thread) -> ListKind:
    return ListKind(
        name=f"participants-{thread.id}",
        title=f"Who takes part in {shortened(thread.title or str(thread.id), NAME_SHOWN)}",
        topics=frozenset({Topic.THREADS}),
        columns=COLUMNS,
        newest_first=False,
        list_operation=THREADS_PARTICIPANTS,
        query=lambda group, limit, after: ParticipantQuery(thread_id=thread.id, limit=limit, after=after),
        get_operation=None,
        asked=None,
        cells=participant_cells,
        facts=record_facts,
        empty="Nobody takes part.",
        remark=_rights_now,
        jumps={"agents": lambda one: one.agent_id, "threads": lambda one: one.thread_id},
        above="threads",
    )


def _rights_now(one: Participant) -> str:
    rights = {"read": one.can_read, "write": one.can_write, "share": one.can_share}
    return f"may now: {', '.join(name for name, given in rights.items() if given) or 'nothing'}"


def participant_sheet(participants: Sequence[Participant]) -> tuple[SheetPart, ...]:
    """Who takes part, for a sheet about the thread."""
    rows = tuple(
        (
            system_text(*KINDS[one.participant_type]),
            agent_text(one.name, limit=100),
            system_text(_rights_now(one), "$foreground-muted"),
        )
        for one in participants[:SHOWN]
    )
    left = len(participants) - len(rows)
    more = (Remark(system_text(f"{left:,} more.", "$foreground-muted")),) if left else ()
    title = system_text("who takes part", "bold") + system_text("   p opens them", "$foreground-muted")
    return (Heading(title), Listing(SHEET_COLUMNS, rows), *more)


async def every_participant(link: Link, thread_id: ThreadId) -> tuple[Participant, ...]:
    """As many as a few pages hold: enough for the names of those who are written to."""
    found: list[Participant] = []
    after: str | None = None
    for _ in range(PAGES):
        query = ParticipantQuery(thread_id=thread_id, limit=PAGE_LIMIT_MAX, after=after)
        page = await link.call(THREADS_PARTICIPANTS, query)
        found += page.items
        after = page.next
        if after is None:
            break
    return tuple(found)
