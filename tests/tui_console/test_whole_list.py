"""A list that comes in one piece: rows are known by a field that is no id, in the order they came."""

from agent_console.domain.records import Page, Record
from agent_console.tui.lists.whole_list import WholeList


class Named(Record):
    name: str
    value: int = 0


def page(*names: str, value: int = 0) -> Page[Named]:
    return Page[Named](items=tuple(Named(name=name, value=value) for name in names))


def test_it_keeps_the_order_it_came_in() -> None:
    whole = WholeList[Named]("name").merged(None, page("retention", "age", "hops"))

    assert [whole.row_id(record) for record in whole.records] == ["retention", "age", "hops"]
    assert whole.complete


def test_a_row_is_found_by_its_key() -> None:
    whole = WholeList[Named]("name").merged(None, page("retention", "age"))

    assert [whole.index_of(name) for name in ("retention", "age", "hops")] == [0, 1, None]


def test_what_comes_next_replaces_all_of_it() -> None:
    whole = WholeList[Named]("name").merged(None, page("retention", "age"))

    again = whole.merged(whole.last_before(2), page("age", value=1))

    assert [(record.name, record.value) for record in again.records] == [("age", 1)]
