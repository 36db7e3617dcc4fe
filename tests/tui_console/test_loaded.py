"""The part of a list that has been fetched, while parts of it are fetched again."""

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from agent_console.domain.ids import JobId
from agent_console.domain.records import Page, Record
from agent_console.tui.agent_text import system_text
from agent_console.tui.lists.loaded import Loaded, LoadedRows


class Listed(Record):
    id: JobId
    version: int = 0


def listed(number: int, version: int = 0) -> Listed:
    return Listed(id=JobId(int=number), version=version)


def page(*numbers: int, more: bool = True, version: int = 0) -> Page[Listed]:
    items = tuple(listed(number, version) for number in numbers)
    return Page[Listed](items=items, next=str(items[-1].id) if more else None)


def numbers(loaded: Loaded[Listed]) -> list[int]:
    return [record.id.int for record in loaded.records]


def newest_first(*known: int, complete: bool = False) -> Loaded[Listed]:
    return Loaded(True, tuple(map(listed, known)), complete)


def test_the_first_page_is_the_list_so_far() -> None:
    loaded = Loaded[Listed](True).merged(None, page(9, 8, 7))

    assert numbers(loaded) == [9, 8, 7]
    assert not loaded.complete


def test_the_next_page_follows_the_last_row() -> None:
    loaded = newest_first(9, 8, 7).merged(str(JobId(int=7)), page(6, 5, more=False))

    assert numbers(loaded) == [9, 8, 7, 6, 5]
    assert loaded.complete


def test_a_page_replaces_exactly_the_stretch_it_covers() -> None:
    loaded = newest_first(9, 8, 7, 6, 5, 4, complete=True)

    again = loaded.merged(str(JobId(int=8)), page(7, 5, version=1))

    assert numbers(again) == [9, 8, 7, 5, 4]
    assert [record.version for record in again.records] == [0, 0, 1, 1, 0]
    assert again.complete


def test_new_rows_at_the_top_are_put_before_the_known_ones() -> None:
    loaded = newest_first(9, 8, 7, 6).merged(None, page(11, 10, 9, 8))

    assert numbers(loaded) == [11, 10, 9, 8, 7, 6]


def test_a_top_that_does_not_reach_the_known_rows_begins_the_list_anew() -> None:
    loaded = newest_first(9, 8, 7, complete=True).merged(None, page(30, 29, 28))

    assert numbers(loaded) == [30, 29, 28]
    assert not loaded.complete


def test_a_page_that_was_asked_for_before_the_list_began_anew_is_left_out() -> None:
    begun_anew = newest_first(30, 29, 28)

    assert begun_anew.merged(str(JobId(int=7)), page(6, 5)) is begun_anew
    assert Loaded[Listed](True).merged(str(JobId(int=7)), page(6, 5)).records == ()


def test_a_page_on_its_way_while_rows_appear_above_leaves_no_gap() -> None:
    asked_after = str(JobId(int=7))
    grown = newest_first(9, 8, 7).merged(None, page(12, 11, 10, 9, 8))

    loaded = grown.merged(asked_after, page(6, 5))

    assert numbers(loaded) == [12, 11, 10, 9, 8, 7, 6, 5]


def test_the_last_page_ends_the_list_whatever_was_known_behind_it() -> None:
    loaded = newest_first(9, 8, 7, 6, 5).merged(str(JobId(int=8)), page(7, more=False))

    assert numbers(loaded) == [9, 8, 7]
    assert loaded.complete


def test_an_empty_last_page_ends_the_list() -> None:
    loaded = newest_first(9, 8, 7).merged(str(JobId(int=7)), Page[Listed](items=()))

    assert numbers(loaded) == [9, 8, 7]
    assert loaded.complete


def test_a_list_that_grows_at_its_end_is_in_the_order_of_its_ids() -> None:
    loaded = Loaded(False, tuple(map(listed, (1, 2, 3)))).merged(str(JobId(int=2)), page(3, 4, 5, more=False))

    assert numbers(loaded) == [1, 2, 3, 4, 5]


def test_a_row_is_found_by_its_id() -> None:
    loaded = newest_first(9, 7, 5)
    rows = LoadedRows(loaded, lambda record: (system_text(str(record.id.int)),))

    assert [rows.index_of(str(JobId(int=number))) for number in (9, 8, 7, 5, 4, 10)] == [0, None, 1, 2, None, None]
    assert rows.row_at(1).cells[0].plain == "7"
    assert LoadedRows(newest_first(), lambda record: ()).index_of(str(JobId(int=9))) is None


@dataclass(frozen=True)
class Step:
    """So many rows arrive, some are not in the list for now, a page is asked for; perhaps its answer is late."""

    arriving: int
    hidden: frozenset[int]
    start: int
    limit: int
    late: bool


STEPS = st.lists(
    st.builds(
        Step,
        arriving=st.integers(0, 8),
        hidden=st.frozensets(st.integers(1, 30), max_size=4),
        start=st.integers(0, 20),
        limit=st.integers(1, 6),
        late=st.booleans(),
    ),
    min_size=1,
    max_size=15,
)


def answer(truth: frozenset[int], after: str | None, limit: int, descending: bool) -> Page[Listed]:
    """What the database answers: one keyset page."""
    listing = sorted(truth, reverse=descending)
    last = None if after is None else JobId.parse(after).int
    behind = [n for n in listing if last is None or (n < last if descending else n > last)]
    shown = behind[:limit]
    return page(*shown, more=len(behind) > limit) if shown else Page[Listed](items=())


@settings(max_examples=300)
@given(descending=st.booleans(), steps=STEPS)
def test_no_order_of_pages_of_a_changing_list_shows_a_gap_or_a_repeat(descending: bool, steps: list[Step]) -> None:
    loaded = Loaded[Listed](descending)
    on_their_way: list[tuple[str | None, Page[Listed]]] = []
    never_hidden = frozenset(range(1, 200)).difference(*(step.hidden for step in steps))
    newest = 5

    for step in steps:
        newest += step.arriving
        after = loaded.last_before(step.start)
        truth = frozenset(range(1, newest + 1)) - step.hidden
        on_their_way.append((after, answer(truth, after, step.limit, descending)))
        while on_their_way and not step.late:
            loaded = loaded.merged(*on_their_way.pop())
            shown = numbers(loaded)
            assert shown == sorted(set(shown), reverse=descending), "in order, each once"
            between = {number for number in never_hidden if shown and min(shown) <= number <= max(shown)}
            assert between <= set(shown), "nothing that was there all the time is missing in between"


def found(*numbers: int, to: int) -> Page[Listed]:
    """A page of a filtered list: it looked further than it found."""
    return Page[Listed](items=tuple(map(listed, numbers)), next=str(JobId(int=to)))


def test_a_page_that_found_nothing_goes_on_where_it_looked_last() -> None:
    nothing = Loaded[Listed](True).merged(None, found(to=900))

    assert (numbers(nothing), nothing.complete, nothing.last_before(0)) == ([], False, str(JobId(int=900)))

    more = nothing.merged(str(JobId(int=900)), found(850, to=800)).merged(str(JobId(int=800)), page(7, more=False))

    assert (numbers(more), more.complete) == ([850, 7], True)


def test_looking_again_at_the_top_forgets_nothing_that_was_found_below() -> None:
    everything = Loaded[Listed](True).merged(None, found(to=900)).merged(str(JobId(int=900)), page(7, more=False))

    again = everything.merged(None, found(950, to=901))

    assert (numbers(again), again.complete) == ([950, 7], True)


def test_a_page_of_a_list_that_was_begun_anew_is_not_put_in() -> None:
    begun = Loaded[Listed](True).merged(None, found(to=900))

    assert begun.merged(str(JobId(int=100)), page(7, more=False)) == begun
