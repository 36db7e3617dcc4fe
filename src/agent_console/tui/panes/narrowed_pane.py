"""What narrows a list or leads through it: a filter over all rows, the end it is read from, a word to go to."""

from typing import ClassVar

from textual import on, work
from textual.binding import Binding, BindingType
from textual.content import Content

from agent_console.domain.errors import ConsoleError
from agent_console.domain.filters import Filterable
from agent_console.domain.list_order import ListOrder
from agent_console.domain.records import PAGE_LIMIT_MAX, PageRequest, Record, Request
from agent_console.domain.safe_text import shortened
from agent_console.tui.agent_text import agent_text, system_text
from agent_console.tui.known_values import known_values
from agent_console.tui.lists.loaded import ListSoFar, Loaded, LoadedRows
from agent_console.tui.panes.list_kind import ListGroup, ListKind
from agent_console.tui.panes.pane import Pane, is_waiting
from agent_console.tui.panes.surroundings import Surroundings
from agent_console.tui.wanted import Refused
from agent_console.tui.widgets.filter_line import FilterLine
from agent_console.tui.widgets.find_table import FindTable, MatchWanted, match_in

FINDING = "finding"
OFFERING = "offering"
PAGES_LOOKED_AT = 20
FILTER_SHOWN = 60
NO_CONNECTION = "There is no connection; the list stays as it is."


class NarrowedPane(Pane):
    """The part of a list's pane that decides which rows of it are asked for."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "narrow", "Filter", key_display="/", id="list.filter"),
        Binding("ctrl+f", "find", "Find a word", show=False, id="list.find"),
        Binding("o", "turn_round", "Newest or oldest first", show=False, id="list.order"),
        Binding("E", "save", "Export to a file", show=False, id="list.export"),
    ]

    table: FindTable

    def __init__(self, kind: ListKind, around: Surroundings) -> None:
        super().__init__(kind.name, around)
        self.kind = kind
        self._group = 0
        self._filter_text = ""
        self._order: ListOrder | None = None
        # Mounted when it is first wanted: most lists are never filtered.
        self._typing_line = FilterLine()
        self._loaded: ListSoFar[Record] = self.nothing_yet()
        self._is_refused = False
        """Whether the last question was: until one is answered, nothing further down is asked for."""
        self._told_refusal = ""
        """It is told again only where it is another, or somebody asks."""

    # What is asked for

    @property
    def filter_text(self) -> str:
        return self._filter_text

    @property
    def order(self) -> ListOrder | None:
        """None is the usual one."""
        return self._order

    @property
    def narrowed(self) -> tuple[object, ...]:
        """What an answer has to be an answer to."""
        return self._group, self._filter_text, self._order

    def asked(self, limit: int, after: str | None) -> Request:
        plain = self.kind.query(self.kind.groups[self._group].key, limit, after)
        said: dict[str, object] = {"filter": self._filter_text} if self._filter_text else {}
        if self._order is not None:
            said["order"] = self._order
        return plain.model_copy(update=said) if said else plain

    def nothing_yet(self) -> ListSoFar[Record]:
        return self.kind.nothing_yet() if self._order is None else Loaded(self._order is ListOrder.NEWEST)

    def may_narrow(self, action: str) -> bool:
        match action:
            case "narrow":
                return self.kind.filters is not None and not self._typing_line.is_open
            case "turn_round":
                # What is held in an order of its own can't be turned round.
                return self.kind.so_far is None and "order" in self.kind.list_operation.request.model_fields
            case "save":
                # A list that is one of the looks of a pane leaves that to the pane.
                alone = not any(isinstance(node, Pane) for node in self.ancestors)
                return alone and issubclass(self.kind.list_operation.request, PageRequest)
        return True

    def begin_anew(self) -> None:
        raise NotImplementedError

    async def _fetch(self, after: str | None, limit: int) -> None:
        raise NotImplementedError

    def _rows(self) -> LoadedRows[Record]:
        raise NotImplementedError

    def _at_cursor(self) -> Record | None:
        raise NotImplementedError

    def narrow_to(self, text: str) -> None:
        """Filter by this text, which is known to be readable; nothing is everything."""
        if text != self._filter_text and self.can_begin_anew():
            self._filter_text = text
            self.begin_anew()
            self.refresh_bindings()

    def read_from(self, order: ListOrder | None) -> None:
        if self.can_begin_anew():
            self._order = order
            self.begin_anew()

    def can_begin_anew(self) -> bool:
        """Not while nobody answers: what is shown would be gone, and nothing would come instead."""
        if not self.around.up:
            self.notify(NO_CONNECTION, severity="warning", markup=False)
        return self.around.up

    # What it looks like

    def narrowed_words(self, count: str, group: ListGroup) -> Content:
        """How much of what is shown, and from which end."""
        muted = "$foreground-muted"
        if self._filter_text:
            shown = system_text(f"{count} of {group.among or group.title or 'all'} match ", muted)
            shown += agent_text(self._filter_text, "bold", limit=FILTER_SHOWN)
        else:
            shown = system_text(f"{count} {group.title}".rstrip(), muted)
        if self._order is not None:
            shown += system_text(f", {self._order.value} first", muted)
        if self.table.word:
            shown += system_text("   n N ", muted) + agent_text(self.table.word, "bold", limit=20)
        return shown

    @property
    def is_searching(self) -> bool:
        """Whether rows may still be found to fill the screen. A page looks at so many: where few match, and in
        some lists where none does, it holds next to nothing and there is another."""
        wants_more = bool(self._filter_text) or not self._loaded.records
        return wants_more and not (self._is_refused or self._loaded.complete or self._has_screenful)

    @property
    def _has_screenful(self) -> bool:
        return len(self._loaded.records) > (self.table.cursor_index or 0) + self.table.size.height

    @property
    def empty_words(self) -> str:
        if self.is_searching:
            return "Searching …"
        if not self._filter_text:
            return self.kind.groups[self._group].empty or self.kind.empty
        others = ", f shows another group" if len(self.kind.groups) > 1 else ""
        said = shortened(self._filter_text, FILTER_SHOWN)
        return f"Nothing matches.\nFiltered by {said}\n/ changes the filter, Esc clears it{others}."

    # Keys

    async def action_narrow(self) -> None:
        if (filters := self.kind.filters) is not None:
            await self._open_line("Filter", self._filter_text, filters)

    async def action_find(self) -> None:
        await self._open_line("Find", self.table.word, None)

    async def _open_line(self, question: str, text: str, filters: Filterable | None) -> None:
        if not self._typing_line.is_attached:
            await self.mount(self._typing_line)
        self._typing_line.open(question, text, filters)

    def action_turn_round(self) -> None:
        usual = ListOrder.NEWEST if self.kind.newest_first else ListOrder.OLDEST
        other = ListOrder.OLDEST if self.kind.newest_first else ListOrder.NEWEST
        self.read_from(other if self._order in (None, usual) else None)

    def action_save(self) -> None:
        from agent_console.tui.dialogs.list_export import ListExport

        usual = self.asked(1, None)
        self.app.push_screen(ListExport(self.kind, usual, self._filter_text, self.around))

    def let_go(self) -> bool:
        """End what narrows the list, the latest first; False when nothing does."""
        if self.table.word:
            self.find_word("")
        elif self._filter_text:
            self.narrow_to("")
        else:
            return False
        return True

    @on(FilterLine.Left)
    def _line_left(self) -> None:
        self.take_focus()

    @on(FilterLine.Given)
    def _line_given(self, message: FilterLine.Given) -> None:
        if message.is_filter:
            self.narrow_to(message.text)
        else:
            self.find_first(message.text)

    @on(FilterLine.Asked)
    def _values_asked(self, message: FilterLine.Asked) -> None:
        self._offer_values(message)

    @work(group=OFFERING)
    async def _offer_values(self, asked: FilterLine.Asked) -> None:
        try:
            values = await known_values(self.around.link, asked.known)
        except ConsoleError as error:
            self._typing_line.forget(asked.known)
            self.post_message(Refused(error))
            return
        self._typing_line.know(asked.known, values)

    # Going from match to match

    def find_first(self, word: str) -> None:
        self.find_word(word)
        if word:
            self._look_for_match(0, 1)

    def find_word(self, word: str) -> None:
        # Whoever looks for another word, or for none any more, is not taken to the one before.
        self.workers.cancel_group(self, FINDING)
        self.table.find(word)
        self.tick()
        self.refresh_bindings()

    @on(MatchWanted)
    def _match_wanted(self, message: MatchWanted) -> None:
        # A key that is held down must not look for the same match many times over.
        if not is_waiting(self, FINDING):
            self._look_for_match((self.table.cursor_index or 0) + message.step, message.step)

    def _look_for_match(self, start: int, step: int) -> None:
        self.stand_still()
        self._told_refusal = ""
        self._go_to_match(start, step)

    def stand_still(self) -> None:
        """Called before rows are gone through: from now on none of them may be let go."""

    @work(group=FINDING)
    async def _go_to_match(self, start: int, step: int) -> None:
        """Among the rows that are here, then page by page; who waits too long is asked to press again."""
        asked, word = self.narrowed, self.table.word
        for _ in range(PAGES_LOOKED_AT):
            found = await match_in(self._rows(), word, start, step)
            if found is not None:
                self.table.move_to(self._rows().row_at(found).id)
                return
            if step < 0 or self._loaded.complete:
                where = "above" if step < 0 else "below"
                self.notify(f"No row with that {where}.", severity="warning", markup=False)
                return
            if not self.around.up:
                self.notify(NO_CONNECTION, severity="warning", markup=False)
                return
            start = len(self._loaded.records)
            if not await self._fetch_further() or asked != self.narrowed:
                return
        self.notify("Nothing so far; n looks further.", markup=False)

    async def _fetch_further(self) -> bool:
        """The next page. False when nothing came, which is told where it was asked for."""
        going_on = self._loaded.last_before(len(self._loaded.records))
        await self._fetch(going_on, PAGE_LIMIT_MAX)
        return self._loaded.complete or self._loaded.last_before(len(self._loaded.records)) != going_on
