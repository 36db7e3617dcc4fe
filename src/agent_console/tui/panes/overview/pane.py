"""The first thing one sees: what needs somebody now, and how everything goes."""

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical

from agent_console.domain.attention import AttentionItem, AttentionQuery
from agent_console.domain.errors import ConsoleError
from agent_console.domain.records import Nothing
from agent_console.domain.spans import ago
from agent_console.repository.operations import POOL_STATUS, Answered, Asked, Operation
from agent_console.repository.operations.attention import ATTENTION_LIST
from agent_console.repository.operations.audit_trail import AUDIT_SEAL_STATUS
from agent_console.repository.operations.duties import DUTIES_LIST
from agent_console.repository.operations.explaining import QUEUE_STATS
from agent_console.repository.port import Change, Topic
from agent_console.tui.agent_text import system_text
from agent_console.tui.history import SAMPLE_SECONDS, History, Sample
from agent_console.tui.link import GONE
from agent_console.tui.panes.list_pane import SIDE_BY_SIDE
from agent_console.tui.panes.overview import concerns as overview_concerns
from agent_console.tui.panes.overview import numbers as overview_numbers
from agent_console.tui.panes.overview.concerns import Concern, Conditions, concerns
from agent_console.tui.panes.overview.numbers import GRAPH, Number, numbers
from agent_console.tui.panes.overview.ways import OVERVIEW
from agent_console.tui.panes.pane import Pane, is_waiting
from agent_console.tui.panes.surroundings import Surroundings
from agent_console.tui.widgets.changing_line import ChangingLine
from agent_console.tui.widgets.rows import ListSource
from agent_console.tui.widgets.virtual_table import HEADER_HEIGHT, VirtualTable
from agent_console.tui.widgets.virtual_table_columns import place_columns
from agent_console.tui.widgets.virtual_table_messages import RowChosen

TOPICS = frozenset({Topic.AGENTS, Topic.JOBS, Topic.RUNS, Topic.APPROVALS, Topic.EVERYTHING})
LOW = 19
"""On fewer lines the numbers give way to what needs somebody; the rest of them is scrolled to."""
FRAME_LINES = 3
"""What the console has above and below every pane: header, line of panes, footer."""
LOOKING = "looking"
SAMPLING = "sampling"
CALM = "Nothing needs you."


class OverviewPane(Pane):
    """Two lists, one above the other or side by side; Tab goes between them, Enter to where a line leads."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab,shift+tab", "other_list", "Other list", id="overview.other_list"),
        Binding("r", "refresh", "Refresh", show=False, id="overview.refresh"),
    ]

    def __init__(self, around: Surroundings) -> None:
        super().__init__(OVERVIEW, around)
        self.history = History()
        self._items: Sequence[AttentionItem] | None = None
        self._known = Conditions()
        self._problems: dict[str, str] = {}
        self._dirty = True
        self._has_looked = False
        self._concerns: dict[str, Concern] = {}
        self._numbers: dict[str, Number] = {}
        self._heading_line = ChangingLine(system_text("Needs attention …", "bold"), classes="heading")
        loading = system_text("Loading …")
        self.needing = VirtualTable(overview_concerns.COLUMNS, ListSource(), empty=loading, id="needing")
        self.going = VirtualTable(overview_numbers.COLUMNS, ListSource(), empty=loading, id="going")
        self._left_in = self.needing

    def compose(self) -> ComposeResult:
        with Container(classes="both"):
            with Vertical(classes="needing"):
                yield self._heading_line
                yield self.needing
            yield self.going

    def on_mount(self) -> None:
        # Before anything is laid out: what is opened over it at once would keep it as it was laid out first.
        self._fit(self.app.size.width, self.app.size.height - FRAME_LINES)
        # Also while another pane is shown: a course with holes in it would tell only when somebody looked.
        self.set_interval(SAMPLE_SECONDS, self._take_sample)

    def on_resize(self, event: events.Resize) -> None:
        self._fit(event.size.width, event.size.height)
        self.call_after_refresh(self.tick)

    def _fit(self, width: int, height: int) -> None:
        self.set_class(width >= SIDE_BY_SIDE, "wide")
        self.set_class(height < LOW, "low")

    @property
    def has_answer(self) -> bool:
        return self._items is not None and self._known.pool is not None and self._known.stats is not None

    def take_focus(self) -> None:
        """Whoever comes back goes on in the list they left."""
        self._left_in.focus()

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        if isinstance(event.widget, VirtualTable):
            self._left_in = event.widget

    def heard(self, change: Change) -> None:
        if change.topic in TOPICS:
            self._dirty = True

    def step(self) -> None:
        """What is known stays for a second at least: it costs more to ask than other lists do."""
        if not self._has_looked:
            self._has_looked = True
            self._look()

    def tick(self) -> None:
        if self._dirty and self.around.up:
            self._look()
        self._show()

    def set_stale(self, stale: bool) -> None:
        self.needing.stale = self.going.stale = stale
        self._dirty = True
        if stale:
            self.workers.cancel_node(self)

    # What is asked

    def _look(self) -> None:
        if not is_waiting(self, LOOKING):
            self._dirty = False
            self._ask()
            self._take_sample()

    def _take_sample(self) -> None:
        if self.around.up and not is_waiting(self, SAMPLING):
            self._sample()

    @work(group=LOOKING)
    async def _ask(self) -> None:
        page = await self._asked(ATTENTION_LIST, AttentionQuery())
        pool = await self._asked(POOL_STATUS, Nothing())
        duties = await self._asked(DUTIES_LIST, Nothing())
        if page is not None:
            self._items = page.items
        known = self._known if pool is None else replace(self._known, pool=pool)
        self._known = known if duties is None else replace(known, duties=duties.items)
        self._show()

    @work(group=SAMPLING)
    async def _sample(self) -> None:
        stats = await self._asked(QUEUE_STATS, Nothing())
        seal = await self._asked(AUDIT_SEAL_STATUS, Nothing())
        if stats is None:
            return
        lag = None if seal is None else max(0.0, seal.lag_seconds)
        self.history = self.history.with_sample(Sample(self.around.clock(), stats, lag))
        self._known = replace(self._known, stats=stats, seal=seal or self._known.seal)
        self._show()

    async def _asked(self, operation: Operation[Asked, Answered], request: Asked) -> Answered | None:
        """Each part on its own: what one of them can't tell, the others still do."""
        try:
            answer = await self.around.link.call(operation, request)
        except GONE:
            self._dirty = True
            return None
        except ConsoleError as error:
            # It is asked again with the next look; until then it stays told.
            self._problems[operation.name] = str(error)
            return None
        self._problems.pop(operation.name, None)
        return answer

    # What is seen

    def _show(self) -> None:
        now, known = self.around.clock(), replace(self._known, problem=" ".join(self._problems.values()))
        if self._items is not None:
            found = concerns(self._items, known)
            if bool(found) != bool(self._concerns):
                # With the first line comes the key that opens one, and with the last it goes.
                self.refresh_bindings()
            self._concerns = {concern.id: concern for concern in found}
            self.needing.empty = system_text(CALM)
            show_from_the_top(self.needing, ListSource(concern.row(now) for concern in found))
            self._show_heading(found)
        if known.pool is not None and known.stats is not None:
            lag = None if known.seal is None else known.seal.lag_seconds
            shown, cells = numbers(known.pool, known.stats, lag, self.history, now), self._graph_cells
            self._numbers = {number.id: number for number in shown}
            self.going.show(ListSource(number.row(cells) for number in shown))

    @property
    def _graph_cells(self) -> int:
        placed = place_columns(overview_numbers.COLUMNS, self.going.scrollable_size.width)
        return next((one.width for one in placed if one.column.key == GRAPH), 0)

    def _show_heading(self, found: Sequence[Concern]) -> None:
        more = "+" if any(item.more for item in self._items or ()) else ""
        words = f"Needs attention {len(found):,}{more}" if found else "✓ All is well"
        above = self.needing.scroll_offset.y
        heading = system_text(words, "bold" if found else "bold $text-success")
        if not self.around.up:
            known_at = self.around.link.answered_at
            age = "" if known_at is None else f"   as of {ago(known_at, self.around.clock())} ago"
            heading = system_text(f"{words}{age}", "$foreground-muted")
        heading += system_text(f"   ↑ {above:,} above" if above else "", "$foreground-muted")
        self._heading_line.show(heading)

    # Keys

    def action_refresh(self) -> None:
        if self.around.up:
            self._look()

    def action_other_list(self) -> None:
        (self.going if self.needing.has_focus else self.needing).focus()

    @on(RowChosen, "#needing")
    def _concern_chosen(self, message: RowChosen) -> None:
        if (concern := self._concerns.get(message.row_id)) is not None:
            self.post_message(concern.way())

    @on(RowChosen, "#going")
    def _number_chosen(self, message: RowChosen) -> None:
        if (number := self._numbers.get(message.row_id)) is not None:
            self.post_message(number.way())


def show_from_the_top(table: VirtualTable, source: ListSource) -> None:
    """What is new stands on top: whoever looks there goes on doing so, as long as the cursor is in sight."""
    was_at_top = table.scroll_offset.y == 0
    table.show(source)
    in_sight = (table.cursor_index or 0) < table.scrollable_size.height - HEADER_HEIGHT
    if was_at_top and in_sight and table.scroll_offset.y:
        table.scroll_to(y=0, animate=False, force=True)
