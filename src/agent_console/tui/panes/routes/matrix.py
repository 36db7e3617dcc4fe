"""The matrix of routes: who may ask whom, with what is known of the pair under the cursor."""

from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Input, Static

from agent_console.domain.errors import ConsoleError, NotFound
from agent_console.domain.filters import FILTER_LENGTH, FilterMistake
from agent_console.domain.ids import RouteId
from agent_console.domain.routes import MatrixAgent, MatrixCell, Route, RouteAsked
from agent_console.domain.states import Presence
from agent_console.repository.operations.routes import ROUTES_GET
from agent_console.repository.port import REFETCH, Change, Topic
from agent_console.tui.agent_text import agent_block, agent_text, system_text
from agent_console.tui.facts import FactSheet
from agent_console.tui.link import GONE
from agent_console.tui.panes.list_pane import SIDE_BY_SIDE
from agent_console.tui.panes.pane import is_waiting
from agent_console.tui.panes.routes.axes import MatrixFilter, Order, read_filter
from agent_console.tui.panes.routes.looks import CELLS, GLYPHS, ITSELF, LEGEND, UNKNOWN
from agent_console.tui.panes.routes.pair import RoutePair, pair_facts, pair_line
from agent_console.tui.panes.routes.reading import MatrixReading, Wanted
from agent_console.tui.panes.surroundings import Surroundings
from agent_console.tui.wanted import Refused
from agent_console.tui.widgets.changing_line import ChangingLine
from agent_console.tui.widgets.detail import DetailPanel
from agent_console.tui.widgets.pasted_line import PastedLine
from agent_console.tui.widgets.policy_matrix import Grid, Pair, PolicyMatrix, Side

LOOKING = "looking"
PAIR = "pair"
AHEAD = 10
NOBODY = "No agents yet.\nAn administrator mints a registration token;\nan agent registers with it."
NO_MATCH = "No agent matches the filter.\nEsc takes it off."


class MatrixLook(Vertical):
    """Asks for the part on the screen and paints what comes back."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "Filter", id="routes.filter"),
        Binding("escape", "unfilter", "Unfilter", show=False, id="routes.unfilter"),
        Binding("o", "order", "Order", show=False, id="routes.order"),
        Binding("r", "refresh", "Refresh", show=False, id="routes.refresh"),
    ]

    def __init__(self, around: Surroundings) -> None:
        super().__init__(classes="matrix-look")
        self.around = around
        self._reading = MatrixReading(around.link)
        self._order = Order.NAME
        self._agents_changed = self._routes_changed = True
        self._otherwise = False
        self._filter, self._mistake = MatrixFilter(), ""
        self._is_refused = False
        self._refused_route: RouteId | None = None
        self._told_refusal = ""
        self._offered = (False, False)
        self._agents: dict[str, MatrixAgent] = {}
        self._route: Route | None = None
        self.has_answer = False
        # Held rather than looked up: an answer may come when the screen is already being taken down.
        self.matrix = PolicyMatrix(empty=system_text("Loading …"))
        self._heading_line = ChangingLine(classes="heading")
        self.filter = PastedLine(
            classes="filter",
            compact=True,
            placeholder="names, from:name to:name policy:asks",
            max_length=FILTER_LENGTH,
        )
        self._pair_line = ChangingLine(classes="pair")
        self._side = DetailPanel(classes="side")
        self._legend: Content = LEGEND

    def compose(self) -> ComposeResult:
        with Horizontal():
            with Vertical(classes="list"):
                yield self._heading_line
                yield self.filter
                yield self.matrix
                yield self._pair_line
                yield Static(self._legend, classes="legend")
            yield self._side

    def on_mount(self) -> None:
        self.filter.display = False

    def on_resize(self) -> None:
        self.set_class(self.app.size.width >= SIDE_BY_SIDE, "wide")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action != "unfilter" or bool(self.filter.value) or self.filter.has_focus

    # What the pane reads

    @property
    def pair(self) -> RoutePair | None:
        """The two agents under the cursor, and their route as it was seen."""
        pair = self.matrix.pair
        if pair is None:
            return None
        of, to = self._agents[pair[0]], self._agents[pair[1]]
        return RoutePair(of.id, of.name, to.id, to.name)

    @property
    def cell(self) -> MatrixCell | None:
        pair = self.matrix.pair
        return None if pair is None else self._reading.known.cells.get(pair)

    # Freshness

    def heard(self, change: Change) -> None:
        everything = change.topic is Topic.EVERYTHING
        self._routes_changed |= everything or change.topic is Topic.ROUTES
        self._agents_changed |= everything or change.topic is Topic.AGENTS
        if self._routes_changed:
            self._refused_route = None

    def step(self) -> None:
        if not is_waiting(self, LOOKING) and (self._is_dirty or (self._lacks() and not self._is_refused)):
            self._look()
        if (cell := self._unread_cell) is not None and not is_waiting(self, PAIR):
            self._fetch_route(cell)

    @property
    def _unread_cell(self) -> MatrixCell | None:
        cell = self.cell
        if cell is None or self._has_route_of(cell) or cell.route_id == self._refused_route:
            return None
        return cell

    @property
    def _is_dirty(self) -> bool:
        return self._agents_changed or self._routes_changed or self._otherwise

    @property
    def is_settled(self) -> bool:
        """Whether all that is on the screen has come."""
        asking = is_waiting(self, LOOKING) or is_waiting(self, PAIR)
        return self.has_answer and not asking and not self._is_dirty and not self._lacks()

    def _lacks(self) -> bool:
        return self._reading.lacks(self._wanted())

    def _wanted(self) -> Wanted:
        """What is on the screen and a little ahead, whether there are so many agents or not."""
        down, across = self.matrix.room
        rows, columns = range(down.start, down.stop + AHEAD), range(across.start, across.stop + AHEAD)
        return Wanted(rows, columns, self._filter, self._order)

    @work(group=LOOKING)
    async def _look(self) -> None:
        agents_changed, routes_changed = self._agents_changed, self._routes_changed
        self._agents_changed = self._routes_changed = self._otherwise = False
        try:
            await self._reading.look(self._wanted(), agents_changed=agents_changed, routes_changed=routes_changed)
        except GONE:
            self._agents_changed, self._routes_changed = True, True
            return
        except ConsoleError as error:
            self._is_refused = True
            self._tell_once(error)
        else:
            self._is_refused = False
        self.has_answer = True
        self._show_grid()
        self._show_keys()

    @work(group=PAIR)
    async def _fetch_route(self, cell: MatrixCell) -> None:
        try:
            self._route = await self.around.link.call(ROUTES_GET, RouteAsked(route_id=cell.route_id))
        except NotFound:
            self._routes_changed = True
            return
        except ConsoleError as error:
            if not isinstance(error, GONE):
                self._refused_route = cell.route_id
                self._tell_once(error)
            return
        self._routes_changed |= self._route.version != cell.version
        self.tick()

    def _tell_once(self, error: ConsoleError) -> None:
        """It is asked again whenever something may have changed, and told when the answer is another."""
        if str(error) != self._told_refusal:
            self._told_refusal = str(error)
            self.post_message(Refused(error))

    def _has_route_of(self, cell: MatrixCell) -> bool:
        return self._route is not None and self._route.id == cell.route_id and self._route.version >= cell.version

    def set_stale(self, stale: bool) -> None:
        self.matrix.stale = stale
        self._side.set_stale(stale)
        if stale:
            # Nobody waits for answers that will not come; everything is asked for again after the return.
            self.workers.cancel_node(self)
            self._agents_changed = self._routes_changed = True

    # What is seen

    def tick(self) -> None:
        self._heading_line.show(self._heading())
        pair, cell, now = self.pair, self.cell, self.around.clock()
        route = self._route if cell is not None and self._has_route_of(cell) else None
        policy = None if cell is None else cell.policy
        if pair is not None:
            self._pair_line.show(pair_line(pair, policy, route, now))
            self._side.show(pair_facts(pair, policy, route, now))
        else:
            self._pair_line.show(system_text(""))
            self._side.show(FactSheet())

    def _show_keys(self) -> None:
        """Which keys there are depends on whether the pair is one, and has a route."""
        pair = self.pair
        offered = (pair is not None and not pair.is_itself, self.cell is not None)
        if offered != self._offered:
            self._offered = offered
            self.refresh_bindings()

    def _show_grid(self) -> None:
        axes = self._reading.axes
        rows = {str(agent.id): agent for agent in axes.rows}
        columns = {str(agent.id): agent for agent in axes.columns}
        self._agents = rows | columns
        grid = Grid(Side.of(_named(rows)), Side.of(_named(columns)), self._cell_text)
        self.matrix.show(grid, self._empty_words())
        self.tick()

    def _empty_words(self) -> Content:
        if self._is_refused:
            return agent_block(self._told_refusal)
        return system_text(NO_MATCH if self._filter.says_something else NOBODY)

    def _cell_text(self, pair: Pair, wordy: bool) -> Content:
        if pair[0] == pair[1]:
            return ITSELF
        cell = self._reading.known.cells.get(pair)
        if cell is None and not self._reading.known.knows(*pair):
            return UNKNOWN
        policy = None if cell is None else cell.policy
        return CELLS[policy] if wordy else GLYPHS[policy]

    def _heading(self) -> Content:
        rows, columns, more = self._reading.axes.rows, self._reading.axes.columns, not self._reading.complete
        count = f"{len(rows):,}{'+' if more else ''}" if self.has_answer else "…"
        who = count if len(rows) == len(columns) else f"{count} × {len(columns):,}"
        shown = system_text("Routes ", "bold")
        shown += system_text(f"{who} agents, {self._order.value}", "$foreground-muted")
        down, across = self.matrix.rows_seen, self.matrix.columns_seen
        if len(down) < len(rows) or len(across) < len(columns):
            part = f"   {down.start + 1}–{down.stop} ↓  {across.start + 1}–{across.stop} →"
            shown += system_text(part, "$foreground-muted")
        if self._reading.capped:
            shown += system_text(f"   only the first {len(self._agents):,} were searched", "$text-warning")
        return shown + agent_text(f"   ✗ {self._mistake}" if self._mistake else "", "$text-error", limit=100)

    # Keys

    @on(PolicyMatrix.Moved)
    def _moved(self) -> None:
        self.tick()
        self._show_keys()
        if self.around.up:
            self.step()

    def action_refresh(self) -> None:
        self.heard(REFETCH)
        self._look_otherwise()

    def action_order(self) -> None:
        self._order = self._order.following
        self._look_otherwise()

    def action_filter(self) -> None:
        self.filter.display = True
        # At once: the next key may be waiting already, and it is text.
        self.screen.set_focus(self.filter)

    def action_unfilter(self) -> None:
        self.filter.value = ""
        self._leave_filter()

    @on(PastedLine.Told)
    def _was_pasted(self, message: PastedLine.Told) -> None:
        message.stop()
        self.notify(system_text(message.words).plain, severity="warning", markup=False)

    @on(Input.Submitted)
    def _filter_given(self) -> None:
        """What can't be read is not given: it would be taken for what is shown."""
        if not self._mistake:
            self._leave_filter()

    def _leave_filter(self) -> None:
        self.filter.display = bool(self.filter.value)
        self.matrix.focus()

    @on(Input.Changed)
    def _filter_typed(self) -> None:
        """While what is typed can't be read, what is shown stays as it was."""
        try:
            self._filter, self._mistake = read_filter(self.filter.value), ""
        except FilterMistake as mistake:
            self._mistake = str(mistake)
            self.tick()
        else:
            self._look_otherwise()

    def _look_otherwise(self) -> None:
        """Other agents are wanted, or in another order; who is there is still known."""
        self._otherwise = True
        self._told_refusal = ""
        self.refresh_bindings()
        self.tick()
        if self.around.up:
            self.step()


def _named(agents: dict[str, MatrixAgent]) -> dict[str, Content]:
    return {
        key: agent_text(agent.name, "$foreground-muted" if agent.status is Presence.REVOKED else "", limit=60)
        for key, agent in agents.items()
    }
