"""A pane that lists one kind of thing: pages as they are needed, fresh where someone looks."""

from collections.abc import Callable
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content

from agent_console.domain.errors import ConsoleError
from agent_console.domain.permissions import Role
from agent_console.domain.records import PAGE_LIMIT_MAX, Page, Record
from agent_console.repository.operations import AnyOperation
from agent_console.repository.port import Change, Topic
from agent_console.tui.actions import Action, list_actions, row_actions
from agent_console.tui.agent_text import agent_block, system_text
from agent_console.tui.facts import FactSheet
from agent_console.tui.link import GONE
from agent_console.tui.lists.loaded import ListSoFar, LoadedRows
from agent_console.tui.panes.list_kind import ListKind
from agent_console.tui.panes.narrowed_pane import NarrowedPane
from agent_console.tui.panes.pane import is_waiting
from agent_console.tui.panes.related import related_bindings
from agent_console.tui.panes.surroundings import Surroundings
from agent_console.tui.subject import Subject
from agent_console.tui.wanted import ActionWanted, BackWanted, ListWanted, RecordWanted, Refused, ThingWanted
from agent_console.tui.widgets.changing_line import ChangingLine
from agent_console.tui.widgets.detail import DetailPanel
from agent_console.tui.widgets.find_table import FindTable
from agent_console.tui.widgets.virtual_table_messages import (
    CursorMoved,
    MarksChanged,
    NearEnd,
    RowChosen,
    TooManyToMark,
)

SIDE_BY_SIDE = 120
"""From this many columns on the detail stands beside the list."""
AHEAD = 20
AROUND = "around"
MORE = "more"
PAGES_AT_ONCE = 5
"""So many pages that found next to nothing are asked for before somebody looks at the clock again."""


class ListPane(NarrowedPane):
    """One list with its detail. It asks through the link and paints what comes back."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "act", "Actions", id="list.act"),
        Binding("n", "new", "New", id="list.new"),
        Binding("f", "next_group", "Group", id="list.group"),
        Binding("u", "beside('upcoming')", "Upcoming", id="list.upcoming"),
        *related_bindings("list", shown=False),
        Binding("escape", "back", "Back", id="list.back"),
        Binding("r", "refresh", "Refresh", id="list.refresh", show=False),
    ]

    def __init__(self, kind: ListKind, around: Surroundings) -> None:
        super().__init__(kind, around)
        self._link = around.link
        self._clock = around.clock
        self._had_rows = False
        self._fetched = False
        self._dirty = True
        self._fresh = range(0)
        # Held rather than looked up: an answer may come when the screen is already being taken down.
        self.table = FindTable(kind.columns, self._rows(), empty=system_text("Loading …"), id=f"table-{kind.name}")
        self._heading_line = ChangingLine(self._heading(), classes="heading")
        self._side = DetailPanel(classes="side")

    def compose(self) -> ComposeResult:
        with Horizontal():
            with Vertical(classes="list"):
                yield self._heading_line
                yield self.table
            yield self._side

    @property
    def crumb(self) -> str:
        return self.kind.title

    @property
    def tab(self) -> str:
        return self.kind.above or self.kind.name

    @property
    def has_answer(self) -> bool:
        return self._fetched

    @property
    def listing(self) -> AnyOperation:
        """What its pages are asked for with."""
        return self.kind.list_operation

    def take_focus(self) -> None:
        self.table.focus()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """What can't be done now, by this role or on a read-only profile is not on the menu, not refused later."""
        match action:
            case "act":
                return self._had_rows and self.offers(row_actions)
            case "new":
                return not self.kind.read_only and self.offers(list_actions)
            case "next_group":
                return len(self.kind.groups) > 1
            case "below":
                return self._had_rows and parameters[0] in self.kind.below
            case "jump":
                return self._leads_to(str(parameters[0])) is not None
            case "beside":
                return parameters[0] in self.kind.beside
            case "back":
                return bool(self.kind.above or self.filter_text or self.table.word)
        return self.may_narrow(action)

    def offers(self, choices: Callable[[AnyOperation, Role], tuple[Action, ...]]) -> bool:
        """Whether there is anything among these choices that can be done from here, by this role, now."""
        role = self.around.acting_as
        return role is not None and bool(choices(self.kind.list_operation, role))

    def on_mount(self) -> None:
        # At once: a list that is first laid out without its detail would be laid out twice.
        self._lay_out()

    def on_resize(self) -> None:
        self._lay_out()

    def on_show(self) -> None:
        # While another pane was shown nobody told it of a new size.
        self._lay_out()

    def _lay_out(self) -> None:
        self.set_class(self.app.size.width >= SIDE_BY_SIDE, "wide")
        self._show_side()

    # Freshness

    def heard(self, change: Change) -> None:
        """Something may have changed; it is looked at with the next step, many notices at once."""
        if change.topic in self.kind.topics or change.topic is Topic.EVERYTHING:
            self._dirty = True

    def step(self) -> None:
        """Called a few times a second while this pane is shown."""
        if self._dirty:
            self.refetch()
        # Also where something changes all the time.
        if self.is_searching:
            self._more()

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
        self._told_refusal = ""
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
    async def _fetch_around(self, after: str | None, limit: int) -> None:
        await self._fetch(after, limit)

    @work(group=MORE)
    async def _fetch_more(self, after: str | None, limit: int) -> None:
        await self._fetch(after, limit)
        for _ in range(PAGES_AT_ONCE):
            going_on = self._loaded.last_before(len(self._loaded.records))
            if not self.is_searching or going_on == after:
                return
            after = going_on
            await self._fetch(after, limit)

    async def _fetch(self, after: str | None, limit: int) -> None:
        narrowed = self.narrowed
        try:
            page: Page[Record] = await self._link.call(self.listing, self.asked(limit, after))
        except ConsoleError as error:
            self._was_refused(error)
            return
        if narrowed == self.narrowed:
            self._take(self._loaded.merged(after, page))

    def _was_refused(self, error: ConsoleError) -> None:
        """Only the next look around asks again: at once it would be refused again. It is told once."""
        if isinstance(error, GONE):
            self._dirty = True
            return
        self._is_refused = True
        if str(error) != self._told_refusal:
            self._told_refusal = str(error)
            self.post_message(Refused(error))
        if not self._loaded.records:
            self._fetched = True
            self.table.empty = agent_block(str(error))
            self._show_heading()

    def _take(self, loaded: ListSoFar[Record]) -> None:
        self._loaded = loaded
        self._is_refused = False
        is_first, self._fetched = not self._fetched, True
        self.table.empty = agent_block(self.empty_words)
        self.table.show(self._rows())
        self._show_heading()
        self._show_side()
        if is_first or bool(loaded.records) != self._had_rows:
            # With the first row come the keys that act on one, and with the last they go.
            self._had_rows = bool(loaded.records)
            self.refresh_bindings()

    def _rows(self) -> LoadedRows[Record]:
        now = self._clock()
        return LoadedRows(self._loaded, lambda record: self.kind.cells(record, now))

    def _heading(self) -> Content:
        is_known = self._fetched and bool(self._loaded.records or not self._is_refused)
        count = f"{len(self._loaded.records):,}{'' if self._loaded.complete else '+'}" if is_known else "…"
        title = system_text(f"{self.kind.title} ", "bold")
        shown = title + self.narrowed_words(count, self.kind.groups[self._group])
        if self._fetched and self.is_searching:
            shown += system_text("   searching …", "$text-warning")
        if self.table.marks:
            # What a key does depends on it, also when the marked rows are out of sight.
            shown += system_text(f"   ● {len(self.table.marks):,} marked, Esc unmarks", "bold")
        return shown + system_text(self._above(), "$foreground-muted")

    def _above(self) -> str:
        """The cursor's line stays where it is, so what comes in above it is out of sight; say that it is there."""
        above = self.table.scroll_offset.y
        return f"   ↑ {above:,} above" if above else ""

    def _show_heading(self) -> None:
        self._heading_line.show(self._heading())

    # Keys

    @on(NearEnd)
    def _more(self) -> None:
        if not (self._is_refused or self._loaded.complete or is_waiting(self, MORE)) and self._fetched:
            self._fetch_more(self._loaded.last_before(len(self._loaded.records)), PAGE_LIMIT_MAX)

    @on(RowChosen)
    def _chosen(self, message: RowChosen) -> None:
        record = self.record(message.row_id)
        if record is None:
            return
        acts = self.kind.enter_acts and self.offers(row_actions)
        self.post_message(
            ActionWanted(self.subject(record), self._acted) if acts else RecordWanted(self.kind, record)
        )

    @on(CursorMoved)
    def _moved(self, message: CursorMoved) -> None:
        message.stop()
        top = self.table.scroll_offset.y
        if top not in self._fresh or top + self.table.size.height not in self._fresh:
            self._dirty = True
        self._show_heading()
        # The cursor is painted first: whoever walks through a list looks at where it is.
        self.call_after_refresh(self._show_side)

    def _at_cursor(self) -> Record | None:
        row_id = self.table.cursor_id
        return None if row_id is None else self.record(row_id)

    @property
    def looked_at(self) -> tuple[ListKind, Record] | None:
        record = self._at_cursor()
        return None if record is None else (self.kind, record)

    @on(MarksChanged)
    def _marked(self) -> None:
        self._show_heading()

    @on(TooManyToMark)
    def _too_many(self, message: TooManyToMark) -> None:
        words = f"More than {message.limit:,} rows can't be marked; n does it to all that match a filter."
        self.notify(system_text(words).plain, severity="warning", markup=False)

    def subject(self, record: Record | None = None, marked: tuple[Record, ...] = ()) -> Subject:
        return Subject(self.kind, self.asked(1, None), record, marked)

    def _marked_records(self) -> tuple[Record, ...]:
        """In the order of the list."""
        places = sorted(place for mark in self.table.marks if (place := self._loaded.index_of(mark)) is not None)
        return tuple(self._loaded.records[place] for place in places)

    def action_act(self) -> None:
        if (record := self._at_cursor()) is not None:
            self.post_message(ActionWanted(self.subject(record, self._marked_records()), self._acted))

    def action_below(self, name: str) -> None:
        if (record := self._at_cursor()) is not None:
            self.post_message(ListWanted(self.kind.below[name](record)))

    def action_jump(self, noun: str) -> None:
        if (thing_id := self._leads_to(noun)) is not None:
            self.post_message(ThingWanted(noun, thing_id))

    def _leads_to(self, noun: str) -> str | None:
        record = self._at_cursor()
        return None if record is None else self.kind.leads_to(noun, record)

    def action_beside(self, name: str) -> None:
        self.post_message(ListWanted(self.kind.beside[name]))

    def action_back(self) -> None:
        if not self.let_go() and self.kind.above:
            self.post_message(BackWanted(self.kind.above))

    def action_new(self) -> None:
        self.post_message(ActionWanted(self.subject(), self._acted))

    def _acted(self, done: bool) -> None:
        if done:
            self.table.unmark_all()
        self.refetch()

    def action_next_group(self) -> None:
        if self.can_begin_anew():
            self._group = (self._group + 1) % len(self.kind.groups)
            self.begin_anew()

    def begin_anew(self) -> None:
        """Another list of the same kind: nothing of it is known yet."""
        self.workers.cancel_node(self)
        self._loaded = self.nothing_yet()
        self._fetched = self._is_refused = False
        self._told_refusal = ""
        self.table.empty = system_text("Loading …")
        self.table.show(self._rows())
        self._show_heading()
        self.refetch()

    # Detail

    def record(self, row_id: str) -> Record | None:
        index = self._loaded.index_of(row_id)
        return None if index is None else self._loaded.records[index]

    def _show_side(self) -> None:
        if not self.has_class("wide"):
            return
        record = self._at_cursor()
        self._side.show(FactSheet() if record is None else self.kind.sheet(record, self._clock()))
