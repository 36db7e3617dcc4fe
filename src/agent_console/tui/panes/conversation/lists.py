"""Threads: what people and agents talk about."""

from datetime import datetime

from textual.content import Content

from agent_console.domain.ids import ThreadId
from agent_console.domain.kinds import Visibility
from agent_console.domain.spans import ago
from agent_console.domain.threads import Archived, Thread, ThreadAsked, ThreadQuery, WhichThreads
from agent_console.repository.operations.threads import THREADS_GET, THREADS_LIST
from agent_console.repository.port import Topic
from agent_console.tui.agent_text import agent_text, system_text
from agent_console.tui.facts import Fact, FactSheet, Heading, SheetPart
from agent_console.tui.panes.conversation.heading import thread_title
from agent_console.tui.panes.conversation.screen import ConversationScreen
from agent_console.tui.panes.list_kind import ListGroup, ListKind
from agent_console.tui.panes.runs.lists import runs_in
from agent_console.tui.widgets.virtual_table_columns import Column

COLUMNS = (
    Column("title", "Title", None, min_width=20),
    Column("state", "State", 10),
    Column("by", "Begun by", 14, min_width=8),
    Column("last", "Last", 7, align="right"),
    Column("age", "Age", 7, align="right", drop=1),
)
GROUPS = (
    ListGroup("all", "you may read", among="all you may read"),
    ListGroup("mine", "you take part in", among="those you take part in"),
    ListGroup("shared", "shared with the team", among="those shared with the team"),
    ListGroup("archived", "archived"),
)
WHICH: dict[str, tuple[WhichThreads, Archived]] = {
    "all": (WhichThreads.ALL, Archived.NO),
    "mine": (WhichThreads.MINE, Archived.NO),
    "shared": (WhichThreads.SHARED, Archived.NO),
    "archived": (WhichThreads.ALL, Archived.ONLY),
}
STATES: dict[Visibility, tuple[str, str]] = {
    Visibility.PRIVATE: ("○ private", ""),
    Visibility.SHARED: ("◎ shared", "$text-accent"),
}


def thread_state(thread: Thread) -> Content:
    if thread.archived_at is not None:
        return system_text("▣ archived", "$foreground-muted")
    return system_text(*STATES[thread.visibility])


def thread_cells(thread: Thread, now: datetime) -> tuple[Content, ...]:
    return (
        agent_text(thread_title(thread), "" if thread.title else "$foreground-muted", limit=200),
        thread_state(thread),
        agent_text(thread.created_by, "$foreground-muted", limit=60),
        system_text(ago(thread.updated_at, now)),
        system_text(ago(thread.created_at, now), "$foreground-muted"),
    )


def thread_facts(thread: Thread, now: datetime) -> FactSheet:
    rights = {"read": True, "write": thread.can_write, "decide who takes part": thread.can_share}
    facts: list[SheetPart] = [
        Heading(agent_text(thread_title(thread), "bold", limit=500)),
        Fact("id", system_text(str(thread.id))),
        Fact("state", thread_state(thread)),
        Fact(
            "begun",
            system_text(f"{ago(thread.created_at, now)} ago by ") + agent_text(thread.created_by, limit=255),
        ),
        Fact("last activity", system_text(f"{ago(thread.updated_at, now)} ago")),
        Fact("you may", system_text(", ".join(name for name, given in rights.items() if given))),
    ]
    if thread.archived_at is not None:
        facts.append(Fact("archived", system_text(f"{ago(thread.archived_at, now)} ago")))
    return FactSheet(tuple(facts))


def _query(group: str, limit: int, after: str | None) -> ThreadQuery:
    which, archived = WHICH[group]
    return ThreadQuery(which=which, archived=archived, limit=limit, after=after)


THREADS = ListKind(
    name="threads",
    title="Threads",
    # What waits in a thread, by which it may be filtered, is told under the other two.
    topics=frozenset({Topic.THREADS, Topic.MESSAGES, Topic.RUNS, Topic.APPROVALS}),
    columns=COLUMNS,
    newest_first=True,
    list_operation=THREADS_LIST,
    query=_query,
    get_operation=THREADS_GET,
    asked=lambda row_id: ThreadAsked(thread_id=ThreadId.parse(row_id)),
    cells=thread_cells,
    facts=thread_facts,
    empty="No threads here.\nn begins one.",
    groups=GROUPS,
    remark=thread_title,
    below={"runs": runs_in},
    screen=ConversationScreen,
)
