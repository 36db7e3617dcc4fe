"""What the matrix asks for: the agents and the cells of the part that is on the screen, and no more."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from agent_console.domain.ids import AgentId
from agent_console.domain.records import PAGE_LIMIT_MAX
from agent_console.domain.routes import Matrix, MatrixAgent, MatrixCell, MatrixQuery, Route, RouteQuery
from agent_console.repository.operations.routes import ROUTES_LIST, ROUTES_MATRIX
from agent_console.tui.link import Link
from agent_console.tui.panes.routes.agents import PAGE_LEAST, AgentsByName
from agent_console.tui.panes.routes.axes import Axes, MatrixFilter, Order, axes_of

PAGES_MOST = 5
"""To filter and to order, agents and routes are read through up to here; beyond it the heading says so."""
SETS_KEPT = 6
ROWS_MOST = 150

Pair = tuple[str, str]


@dataclass(frozen=True)
class KnownCells:
    """The routes among sets of agents that were asked for: a pair of one set without a route has none."""

    cells: dict[Pair, MatrixCell] = field(default_factory=dict)
    among: tuple[frozenset[str], ...] = ()

    def knows(self, of: str, to: str) -> bool:
        return any(of in known and to in known for known in self.among)

    def covers(self, rows: frozenset[str], columns: frozenset[str]) -> bool:
        """Whether every pair of the two is known; many columns may take several sets."""
        left = columns
        for known in self.among:
            if rows <= known:
                left -= known
        return not left

    def merged(self, matrix: Matrix, asked: tuple[AgentId, ...]) -> "KnownCells":
        shown = {agent: str(agent) for agent in {*asked, *(agent.id for agent in matrix.agents)}}
        fresh = frozenset(shown.values())
        among = (fresh, *(known for known in self.among if not known <= fresh))[:SETS_KEPT]
        kept = {pair: cell for pair, cell in self.cells.items() if not (pair[0] in fresh and pair[1] in fresh)}
        new = {(shown[cell.from_agent_id], shown[cell.to_agent_id]): cell for cell in matrix.cells}
        return KnownCells(kept | new, among)


@dataclass(frozen=True)
class Wanted:
    """Which part is looked at, and of which agents."""

    rows: range = range(0)
    columns: range = range(0)
    filter: MatrixFilter = field(default_factory=MatrixFilter)
    order: Order = Order.NAME

    @property
    def is_plain(self) -> bool:
        return self.order is Order.NAME and not self.filter.says_something

    @property
    def needs_routes(self) -> bool:
        return self.order is Order.ROUTES or self.filter.policy is not None

    def stretches(self) -> Iterator[tuple[int, int]]:
        """Rows and columns in one piece where that is no longer than a page, else each on its own."""
        first, last = min(self.rows.start, self.columns.start), max(self.rows.stop, self.columns.stop)
        if last - first <= PAGE_LIMIT_MAX:
            yield first, last
        else:
            yield self.rows.start, self.rows.stop
            yield self.columns.start, self.columns.stop


class MatrixReading:
    """Holds what was answered. One `look` at a time; whoever looks sees to that."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._by_name = AgentsByName()
        self._everybody: tuple[MatrixAgent, ...] | None = None
        self._routes: tuple[Route, ...] = ()
        self._routes_of: MatrixFilter | None = None
        self._fresh: tuple[frozenset[str], ...] = ()
        self._agents_capped = self._routes_capped = False
        self.capped = False
        self.known = KnownCells()
        self.axes = Axes()
        self.complete = False

    async def look(self, wanted: Wanted, *, agents_changed: bool, routes_changed: bool) -> None:
        self._fresh = ()
        if wanted.is_plain:
            await self._look_by_name(wanted, anew=agents_changed)
        else:
            await self._look_at_chosen(wanted, agents_changed=agents_changed, routes_changed=routes_changed)
        # What was answered just now is fresh enough, whatever has changed before.
        answered = KnownCells(among=self._fresh) if agents_changed or routes_changed else self.known
        rows, columns = self._in_sight(wanted)
        if not answered.covers(_shown(rows), _shown(columns)):
            await self._look_at_cells(rows, columns)

    def lacks(self, wanted: Wanted) -> bool:
        """Whether this part holds anything that has never been asked for."""
        if not self.complete and max(wanted.rows.stop, wanted.columns.stop) > len(self.axes.rows):
            return True
        rows, columns = self._in_sight(wanted)
        return not self.known.covers(_shown(rows), _shown(columns))

    async def _look_by_name(self, wanted: Wanted, *, anew: bool) -> None:
        for start, stop in wanted.stretches():
            if anew:
                await self._fetch_stretch(start, stop)
            elif not self._by_name.complete and stop > len(self._by_name.agents):
                await self._fetch_stretch(len(self._by_name.agents), stop)
        agents = self._by_name.agents
        self.axes, self.complete, self.capped = Axes(agents, agents), self._by_name.complete, False

    async def _fetch_stretch(self, start: int, stop: int) -> None:
        begin, after = self._by_name.begin_before(start)
        while True:
            limit = min(PAGE_LIMIT_MAX, max(PAGE_LEAST, stop - begin))
            matrix = await self._ask(MatrixQuery(limit=limit, after=after))
            self._by_name = self._by_name.merged(begin, matrix)
            begin, after = begin + len(matrix.agents), matrix.next
            if after is None or begin >= stop:
                return

    async def _look_at_chosen(self, wanted: Wanted, *, agents_changed: bool, routes_changed: bool) -> None:
        if agents_changed or self._everybody is None:
            self._everybody = await self._everybody_by_name()
        if wanted.needs_routes and (routes_changed or self._routes_of != wanted.filter):
            self._routes, self._routes_of = await self._routes_with(wanted.filter), wanted.filter
        routes = self._routes if wanted.needs_routes else ()
        self.axes = axes_of(self._everybody, routes, wanted.filter, wanted.order)
        self.complete = True
        self.capped = self._agents_capped or (wanted.needs_routes and self._routes_capped)

    async def _everybody_by_name(self) -> tuple[MatrixAgent, ...]:
        found: list[MatrixAgent] = []
        after = None
        for _ in range(PAGES_MOST):
            matrix = await self._ask(MatrixQuery(limit=PAGE_LIMIT_MAX, after=after))
            found += matrix.agents
            after = matrix.next
            if after is None:
                break
        self._agents_capped = after is not None
        return tuple(found)

    async def _routes_with(self, wanted: MatrixFilter) -> tuple[Route, ...]:
        found: list[Route] = []
        after = None
        for _ in range(PAGES_MOST):
            query = RouteQuery(policy=wanted.policy, limit=PAGE_LIMIT_MAX, after=after)
            page = await self._link.call(ROUTES_LIST, query)
            found += page.items
            after = page.next
            if after is None:
                break
        self._routes_capped = after is not None
        return tuple(found)

    def _in_sight(self, wanted: Wanted) -> tuple[tuple[AgentId, ...], tuple[AgentId, ...]]:
        rows, columns = wanted.rows, wanted.columns
        asking = self.axes.rows[rows.start : rows.start + min(len(rows), ROWS_MOST)]
        asked = self.axes.columns[columns.start : columns.stop]
        return tuple(agent.id for agent in asking), tuple(agent.id for agent in asked)

    async def _look_at_cells(self, rows: tuple[AgentId, ...], columns: tuple[AgentId, ...]) -> None:
        """One question for both sides, or a few where there are more agents in sight than one may name."""
        others = tuple(agent for agent in columns if agent not in set(rows))
        each = PAGE_LIMIT_MAX - len(rows)
        for begin in range(0, max(1, len(others)), each):
            await self._ask(MatrixQuery(agents=rows + others[begin : begin + each]))

    async def _ask(self, query: MatrixQuery) -> Matrix:
        matrix = await self._link.call(ROUTES_MATRIX, query)
        self.known = self.known.merged(matrix, query.agents)
        self._fresh += self.known.among[:1]
        return matrix


def _shown(agents: tuple[AgentId, ...]) -> frozenset[str]:
    return frozenset(map(str, agents))
