"""What makes one list different from another."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from textual.content import Content

from agent_console.domain.filters import Filterable
from agent_console.domain.records import PageRequest, Record, Request
from agent_console.repository.operations import AnyOperation
from agent_console.repository.port import Topic
from agent_console.tui.actions import key_field
from agent_console.tui.facts import FactSheet
from agent_console.tui.lists.loaded import ListSoFar, Loaded
from agent_console.tui.lists.whole_list import WholeList
from agent_console.tui.panes.detail_part import DetailPart, PartSoFar
from agent_console.tui.panes.surroundings import Surroundings
from agent_console.tui.widgets.virtual_table_columns import Column

if TYPE_CHECKING:
    from agent_console.tui.panes.stacked import StackedScreen


@dataclass(frozen=True)
class ListGroup:
    """`title` follows a count; `among` follows "of" where it reads otherwise; `empty` is told when it is."""

    key: str
    title: str
    among: str = ""
    empty: str = ""


def _nothing_more(_record: object, _now: datetime) -> FactSheet:
    return FactSheet()


def _nothing_to_add(_record: object) -> str:
    return ""


@dataclass(frozen=True)
class ListKind:
    """A list, its rows and its detail.

    A detail tells the `facts`, then the `parts` that are asked for when it is opened, then the `origin`, which
    is wanted least. `remark` is said of a thing where something is about to be done to it. `below` are the lists
    that belong to one row, `beside` those that belong to the list, `above` is the pane to go back to; `jumps` say
    by noun which other thing a row leads to. Where a row already tells everything, `enter_acts`: Enter goes on
    to what can be done. `whole` is added to the title where something is about to be done without a row, which a
    list that is `read_only` does not offer. `screen` makes what is opened for a record where the usual detail is
    not enough, `so_far` holds a list that is not in the order of its ids.
    """

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
    origin: Callable[[Any, datetime], FactSheet] = _nothing_more
    parts: tuple[DetailPart, ...] = ()
    remark: Callable[[Any], str] = _nothing_to_add
    below: "Mapping[str, Callable[[Any], ListKind]]" = field(default_factory=dict)
    beside: "Mapping[str, ListKind]" = field(default_factory=dict)
    above: str = ""
    enter_acts: bool = False
    whole: str = ""
    read_only: bool = False
    jumps: Mapping[str, Callable[[Any], object | None]] = field(default_factory=dict)
    screen: "Callable[[ListKind, Any, Surroundings], StackedScreen] | None" = None
    so_far: Callable[[], ListSoFar[Any]] | None = None

    @property
    def key(self) -> str:
        """The field by which its records are known."""
        return key_field(self.list_operation)

    @property
    def filters(self) -> Filterable | None:
        """What its rows can be filtered by; None when nothing declares it."""
        found = getattr(self.list_operation.request, "filters", None)
        return found if isinstance(found, Filterable) else None

    def nothing_yet(self) -> ListSoFar[Record]:
        if self.so_far is not None:
            return self.so_far()
        if issubclass(self.list_operation.request, PageRequest):
            return Loaded(self.newest_first)
        return WholeList(self.key)

    def sheet(self, record: Record, now: datetime, parts: Iterable[PartSoFar] = ()) -> FactSheet:
        """What is known of a record: its facts, the parts that came so far, and where it comes from."""
        loaded = (line for part in parts for line in part.sheet(record, now))
        return FactSheet((*self.facts(record, now).parts, *loaded, *self.origin(record, now).parts))

    def leads_to(self, noun: str, record: Record) -> str | None:
        """The id of the thing of this noun that the record leads to."""
        found = self.jumps[noun](record) if noun in self.jumps else None
        return None if found is None else str(found)
