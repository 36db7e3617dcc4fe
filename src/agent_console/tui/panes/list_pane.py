"""A pane that lists one kind of thing: pages as they are needed, fresh where someone looks."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.dom import DOMNode
from textual.message import Message
from textual.widgets import Static

from agent_console.domain.errors import ConsoleError
from agent_console.domain.ids import Id
from agent_console.domain.records import PAGE_LIMIT_MAX, Page, Record, Request
from agent_console.repository.operations import AGENTS_LIST, AnyOperation
from agent_console.repository.port import Change, Topic
from agent_console.tui.actions import list_actions, row_actions
from agent_console.tui.agent_text import system_text
from agent_console.tui.facts import FactSheet
from agent_console.tui.link import Clock, Link, LinkState, LinkStatus
from agent_console.tui.loaded import Loaded, LoadedRows, id_of
from agent_console.tui.widgets.detail import DetailPanel
from agent_console.tui.widgets.virtual_table import VirtualTable
from agent_console.tui.widgets.virtual_table_columns import Column
from agent_console.tui.widgets.virtual_table_messages import CursorMoved, NearEnd, RowChosen

SIDE_BY_SIDE = 120
"""From this many columns on the detail stands beside the list."""
AHEAD = 20
AROUND = "around"
MORE = "more"


def is_waiting(node: DOMNode, question: str) -> bool:
    """Whether this node has asked and still waits for the answer."""
    asked = (worker for worker in node.workers if worker.node is node and worker.group == question)
    return any(not worker.is_finished and not worker.is_cancelled for worker in asked)


@dataclass(frozen=True)
class ListGroup:
    key: str
    title: str


@dataclass(frozen=True)
class ListKind:
    """All that makes one list different from another."""

    name: str
    title: str
    topics: frozenset[Topic]
    columns: tuple[Column, ...]
    newest_first: bool
    list_operation: AnyOperation
    query: Callable[[str, int, str | None], Request]
    get_operation: AnyOperation | None
    asked: Callable[[str], Request] | None
    cells: Callable[[Any, datetime], tuple[Content, ...]]
    facts: Callable[[Any, datetime], FactSheet]
    empty: str
    groups: tuple[ListGroup, ...] = (ListGroup("all", ""),)


class ListPane(Vertical):
    """One list with its detail. It asks through the link and paints what comes back."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "act", "Actions", id="list.act"),
        Binding("n", "new", "New", id="list.new"),
        Binding("f", "next_group", "Filter", id="list.group"),
        Binding("enter", "open", "Open", id="list.open"),
        Binding("s", "sessions", "Sessions", id="list.sessions", show=False),
        Binding("r", "refresh", "Refresh", id="list.refresh", show=False),
    ]

    class Opened(Message):
        """Somebody wants to read one thing whole."""

        def __init__(self, pane: "ListPane", row_id: str) -> None:
            super().__init__()
            self.pane = pane
            self.row_id = row_id

    class ActionWanted(Message):
        """Somebody wants to do something to one thing, or to the list when there is no record."""

        def __init__(self, pane: "ListPane", record: Record | None) -> None:
            super().__init__()
            self.pane = pane
            self.record = record

    class SessionsWanted(Message):
        """Somebody wants to see the sessions of an agent."""

        def __init__(self, agent: Record) -> None:
            super().__init__()
            self.agent = agent

    class Refused(Message):
        """Fetching was refused for a reason of its own, not because the connection is gone."""

        def __init__(self, error: ConsoleError) -> None:
            super().__init__()
            self.error = error

    def __init__(self, kind: ListKind, link: Link, clock: Clock, *, read_only: bool = False) -> None:
        super().__init__(id=f"pane-{kind.name}", classes="pane")
        self.kind = kind
        self._link = link
        self._read_only = read_only
        self._clock = clock
        self._group = 0
        self._loaded: Loaded[Record] = Loaded(kind.newest_first)
        self._fetched = False
        self._dirty = True
        self._fresh = range(0)
        # Held rather than looked up: an answer may come when the screen is already being taken down.
        self.table = VirtualTable(
            kind.columns, self._rows(), empty=system_text("Loading …"), id=f"table-{kind.name}"
        )
        self._heading_shown: Content = self._heading()
        self._heading_line = Static(self._heading_shown, classes="heading")
        self._side = DetailPanel(classes="side")

    def compose(self) -> ComposeResult:
        with Horizontal():
            with Vertical(classes="list"):
                yield self._heading_line
                yield self.table
            yield self._side

    @property
    def link_status(self) -> LinkStatus:
        return self._link.status

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "sessions":
            return self.kind.list_operation is AGENTS_LIST
        if action in ("act", "new"):
            return self._offers(of_row=action == "act")
        return len(self.kind.groups) > 1 if action == "next_group" else True

    def _offers(self, *, of_row: bool) -> bool:
        """What can't be done now, by this role or on a read-only profile is not on the menu, not refused later."""
        if self._read_only or self._link.me is None or self._link.status.state is not LinkState.UP:
            return False
        choices = row_actions if of_row else list_actions
        return bool(choices(self.kind.list_operation, self._link.me.role))

    def on_resize(self) -> None:
        self.set_class(self.app.size.width >= SIDE_BY_SIDE, "wide")

    # Freshness

    def heard(self, change: Change) -> None:
        """Something may have changed; it is looked at with the next step, many notices at once."""
        if change.topic in self.kind.topics or change.topic is Topic.EVERYTHING:
            self._dirty = True

    def step(self) -> None:
        """Called a few times a second while this pane is shown."""
        if self._dirty:
            self.refetch()

    def tick(self) -> None:
        """Another second: ages move, and only cells that read differently are painted."""
        if self._fetched:
            self.table.show(self._rows())
            self._show_heading()
            self._show_side()

    def set_stale(self, stale: bool) -> None:
        self.table.stale = stale
        self._side.set_stale(stale)
        if stale:
            # Nobody waits for answers that will not come; everything is asked for again after the return.
            self.workers.cancel_node(self)
            self._dirty = True

    def action_refresh(self) -> None:
        self.refetch()

    def refetch(self) -> None:
        """Fetch the stretch that is on the screen again, and a little around it.

        One at a time: on a slow line a newer question must not push out the older one for ever.
        """
        self._dirty = is_waiting(self, AROUND)
        if self._dirty:
            return
        top = max(0, self.table.scroll_offset.y - AHEAD)
        wanted = min(PAGE_LIMIT_MAX, self.table.size.height + 2 * AHEAD)
        self._fresh = range(top, top + wanted)
        self._fetch_around(self._loaded.last_before(top), wanted)

    @work(group=AROUND)
    async def _fetch_around(self, after: Id | None, limit: int) -> None:
        await self._fetch(after, limit)

    @work(group=MORE)
    async def _fetch_more(self, after: Id | None, limit: int) -> None:
        await self._fetch(after, limit)

    async def _fetch(self, after: Id | None, limit: int) -> None:
        group = self._group
        query = self.kind.query(self.kind.groups[group].key, limit, None if after is None else str(after))
        try:
            page: Page[Record] = await self._link.call(self.kind.list_operation, query)
        except ConsoleError as error:
            self._dirty = True
            self.post_message(self.Refused(error))
            return
        if group == self._group:
            self._take(self._loaded.merged(after, page))

    async def fetch_one(self, record: Record) -> Record:
        """The same thing again, as it is now; where nothing gives just one, as the list has it."""
        if self.kind.get_operation is None or self.kind.asked is None:
            return self.record(str(id_of(record))) or record
        answer: Record = await self._link.call(self.kind.get_operation, self.kind.asked(str(id_of(record))))
        return answer

    def _take(self, loaded: Loaded[Record]) -> None:
        self._loaded = loaded
        if not self._fetched:
            self._fetched = True
            self.table.empty = system_text(self.kind.empty)
        self.table.show(self._rows())
        self._show_heading()
        self._show_side()

    def _rows(self) -> LoadedRows[Record]:
        now = self._clock()
        return LoadedRows(self._loaded, lambda record: self.kind.cells(record, now))

    def _heading(self) -> Content:
        count = f"{len(self._loaded.records):,}{'' if self._loaded.complete else '+'}" if self._fetched else "…"
        group = self.kind.groups[self._group].title
        title = system_text(f"{self.kind.title} ", "bold")
        return title + system_text(f"{count} {group}".rstrip() + self._above(), "$foreground-muted")

    def _above(self) -> str:
        """The cursor's line stays where it is, so what comes in above it is out of sight; say that it is there."""
        above = self.table.scroll_offset.y
        return f"   ↑ {above:,} above" if above else ""

    def _show_heading(self) -> None:
        heading = self._heading()
        if not heading.is_same(self._heading_shown):
            self._heading_shown = heading
            self._heading_line.update(heading)

    # Keys

    @on(NearEnd)
    def _more(self) -> None:
        if self._fetched and not self._loaded.complete and not is_waiting(self, MORE):
            self._fetch_more(self._loaded.last_before(len(self._loaded.records)), PAGE_LIMIT_MAX)

    @on(RowChosen)
    def _chosen(self, message: RowChosen) -> None:
        self.post_message(self.Opened(self, message.row_id))

    @on(CursorMoved)
    def _moved(self) -> None:
        top = self.table.scroll_offset.y
        if top not in self._fresh or top + self.table.size.height not in self._fresh:
            self._dirty = True
        self._show_heading()
        self._show_side()

    def action_act(self) -> None:
        row_id = self.table.cursor_id
        record = None if row_id is None else self.record(row_id)
        if record is not None:
            self.post_message(self.ActionWanted(self, record))

    def action_sessions(self) -> None:
        row_id = self.table.cursor_id
        record = None if row_id is None else self.record(row_id)
        if record is not None:
            self.post_message(self.SessionsWanted(record))

    def action_new(self) -> None:
        self.post_message(self.ActionWanted(self, None))

    def action_open(self) -> None:
        self.table.action_choose_row()

    def action_next_group(self) -> None:
        if self._link.status.state is not LinkState.UP:
            self.notify("There is no connection; the list stays as it is.", severity="warning", markup=False)
            return
        self.workers.cancel_node(self)
        self._group = (self._group + 1) % len(self.kind.groups)
        self._loaded = Loaded(self.kind.newest_first)
        self._fetched = False
        self.table.empty = system_text("Loading …")
        self.table.show(self._rows())
        self._show_heading()
        self.refetch()

    # Detail

    def record(self, row_id: str) -> Record | None:
        index = self._loaded.index_of(row_id)
        return None if index is None else self._loaded.records[index]

    def facts_of(self, record: Record) -> FactSheet:
        return self.kind.facts(record, self._clock())

    def _show_side(self) -> None:
        if not self.has_class("wide"):
            return
        row_id = self.table.cursor_id
        record = None if row_id is None else self.record(row_id)
        self._side.show(FactSheet() if record is None else self.facts_of(record))
