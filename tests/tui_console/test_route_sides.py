"""The sides of the matrix: who stands there, in which order, and where cursor and window are."""

import pytest

from agent_console.domain.filters import FilterMistake
from agent_console.domain.ids import AgentId, RouteId
from agent_console.domain.kinds import RoutePolicy
from agent_console.domain.routes import Matrix, MatrixAgent, MatrixCell, Route
from agent_console.domain.states import Presence
from agent_console.tui.panes.routes.agents import AgentsByName
from agent_console.tui.panes.routes.axes import MatrixFilter, Order, axes_of, family_of, read_filter
from agent_console.tui.panes.routes.reading import KnownCells, Wanted
from agent_console.tui.widgets.matrix_shape import Along, shape_of
from tests.support.fleet import AT


def agents(*names: str) -> tuple[MatrixAgent, ...]:
    """Each known by a number that its name ends with."""
    return tuple(
        MatrixAgent(id=AgentId(int=int(name.split("-")[-1])), name=name, status=Presence.ONLINE) for name in names
    )


def page(*names: str, following: str | None = None) -> Matrix:
    return Matrix(agents=agents(*names), cells=(), next=following)


def names(found: AgentsByName) -> list[str]:
    return [agent.name for agent in found.agents]


def route(of: int, to: int) -> Route:
    who = {"created_by_user_id": None, "created_by": None, "updated_by_user_id": None, "updated_by": None}
    return Route.model_validate(
        {"id": RouteId(int=of * 100 + to), "from_agent_id": AgentId(int=of), "from_agent": "x"}
        | {"to_agent_id": AgentId(int=to), "to_agent": "y", "policy": RoutePolicy.ALLOWED, "notes": None}
        | {"version": 1, "created_at": AT, "updated_at": AT}
        | who
    )


@pytest.mark.parametrize(
    ("size", "count", "flat", "columns", "rows"),
    [((78, 17), 5, True, 6, 16), ((78, 17), 200, False, 33, 11), ((58, 13), 200, False, 23, 8)],
)
def test_few_names_are_written_flat_and_many_upright(
    size: tuple[int, int], count: int, flat: bool, columns: int, rows: int
) -> None:
    lengths = [8] * count

    shape = shape_of(*size, lengths, lengths)

    assert (shape.is_flat, shape.columns, shape.rows) == (flat, columns, rows)
    assert shape.left + shape.columns * shape.column <= size[0]


def test_the_cursor_stays_on_its_name_and_the_name_on_its_line() -> None:
    before = [f"a{place}" for place in range(30)]
    after = {name: place for place, name in enumerate(["new", *before[:12], *before[13:]])}

    followed = Along(cursor=20, first=15).followed(before, after, room=10)
    gone = Along(cursor=12, first=10).followed(before, after, room=10)

    assert followed == Along(cursor=20, first=15)
    assert list(after)[gone.cursor] == "a13"
    assert gone.cursor - gone.first == 2


def test_the_cursor_never_leaves_the_window() -> None:
    along = Along()

    for cursor in (5, 99, 42, 0, 1_000_000, -1):
        along = along.moved(cursor, length=100, room=10)
        assert along.cursor in along.seen(100, 10)
    assert Along(5, 0).moved(5, length=0, room=10) == Along(0, 0)
    assert Along(50, 45).paged(1, length=100, room=10) == Along(60, 55)


def test_a_page_that_is_fetched_again_replaces_just_what_it_covers() -> None:
    known = AgentsByName().merged(0, page("a-1", "b-2", "c-3", following="c-3"))
    known = known.merged(3, page("d-4", "e-5"))
    assert known.complete

    renamed = known.merged(0, page("a-1", "aa-6", "c-3", following="c-3"))
    assert names(renamed) == ["a-1", "aa-6", "c-3", "d-4", "e-5"]
    assert renamed.complete
    assert renamed.begin_before(4) == (3, "c-3")

    moved_down = known.merged(3, page("d-4", "z-1"))
    assert names(moved_down) == ["b-2", "c-3", "d-4", "z-1"]
    assert moved_down.begin_before(3) == (2, "c-3")

    nobody_known = known.merged(0, page("A-7", "A-8", following="a-8"))
    assert (names(nobody_known), nobody_known.complete) == (["A-7", "A-8"], False)


def test_what_is_not_known_is_not_taken_for_blocked() -> None:
    cell = MatrixCell(
        route_id=RouteId(int=9),
        from_agent_id=AgentId(int=1),
        to_agent_id=AgentId(int=2),
        policy=RoutePolicy.ALLOWED,
        version=1,
    )
    one, two, three = (str(AgentId(int=number)) for number in (1, 2, 3))

    known = KnownCells().merged(Matrix(agents=agents("a-1", "b-2"), cells=(cell,)), ())
    assert known.cells[one, two] == cell
    assert (known.knows(two, one), known.knows(one, three)) == (True, False)

    removed = known.merged(Matrix(agents=agents("a-1", "b-2", "c-3"), cells=()), ())
    assert (removed.cells, removed.knows(one, three)) == ({}, True)


def test_many_columns_are_known_from_several_answers() -> None:
    known = KnownCells().merged(page("a-1", "b-2"), ()).merged(page("a-1", "c-3"), ())
    one, two, three = (frozenset({str(AgentId(int=number))}) for number in (1, 2, 3))

    assert known.covers(one, two | three)
    assert not known.covers(one | two, three)
    assert known.covers(frozenset(), frozenset())


def test_rows_and_columns_far_apart_are_asked_for_apart() -> None:
    assert list(Wanted(range(0, 20), range(10, 50)).stretches()) == [(0, 50)]
    assert list(Wanted(range(0, 20), range(900, 950)).stretches()) == [(0, 20), (900, 950)]


@pytest.mark.parametrize("typed", ["policy:maybe", "hue:red", "policy:", "!atlas", "policy:asks policy:blocked"])
def test_a_filter_that_can_not_be_read_is_not_taken_for_another(typed: str) -> None:
    with pytest.raises(FilterMistake):
        read_filter(typed)


def test_orders_and_filters() -> None:
    everybody = agents("atlas-1", "build-2", "build-3", "crawl-4")
    routes = (route(4, 1), route(4, 2))

    first = axes_of(everybody, routes, MatrixFilter(), Order.ROUTES)
    families = axes_of(everybody, (), MatrixFilter(), Order.FAMILY)
    allowed = axes_of(everybody, routes, read_filter("policy:allowed"), Order.NAME)
    sides = axes_of(everybody, (), read_filter("FROM:build to:atlas"), Order.NAME)

    assert [agent.name for agent in first.rows] == ["atlas-1", "build-2", "crawl-4", "build-3"]
    assert [agent.name for agent in families.rows] == ["build-2", "build-3", "atlas-1", "crawl-4"]
    assert [[agent.name for agent in side] for side in (allowed.rows, allowed.columns)] == [
        ["crawl-4"],
        ["atlas-1", "build-2"],
    ]
    assert [len(side) for side in (sides.rows, sides.columns)] == [2, 1]
    assert read_filter("policy:requires_human_approval").policy is RoutePolicy.REQUIRES_HUMAN_APPROVAL
    assert [family_of(name) for name in ("Build-07", "7", "über_9")] == ["build", "7", "über"]
