"""Lists that need no hand-made look: derived from the operation that lists them and what its records show."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from textual.content import Content

from agent_console.domain.ids import Id
from agent_console.domain.records import PageRequest, Record, Request
from agent_console.domain.spans import ago, until
from agent_console.repository.operations import NOUNS, OPERATIONS, AnyOperation
from agent_console.repository.operations.fields import shown_value
from agent_console.repository.port import Topic
from agent_console.tui.actions import record_of
from agent_console.tui.agent_text import agent_text, system_text
from agent_console.tui.facts import Fact, FactSheet, Heading
from agent_console.tui.panes.list_kind import ListKind
from agent_console.tui.widgets.virtual_table_columns import Column

TIME_CELLS = 9
WORD_CELLS = 16
LONG_TEXT = 2000


def listing_of(noun: str) -> AnyOperation:
    return next(operation for operation in OPERATIONS if operation.name == f"{noun}.list")


def derived_kind(
    noun: str, topic: Topic, *, of: Mapping[str, str] | None = None, title: str = "", above: str = ""
) -> ListKind:
    """The list of a noun, as its operations and its records describe it.

    `of` holds the ids that a list below something else needs, such as the agent whose sessions are shown;
    `above` is the pane of that something.
    """
    given = dict(of or {})
    listing = listing_of(noun)
    record = record_of(listing)
    getter = next((op for op in OPERATIONS if op.name == f"{noun}.get"), None)
    names = tuple(name for name in (record.columns or tuple(record.model_fields)) if name != "id")
    return ListKind(
        name="-".join((noun, *given.values())),
        title=title or noun.replace("_", " ").capitalize(),
        topics=frozenset({topic}),
        columns=tuple(_column(record, name, place) for place, name in enumerate(names)),
        newest_first=is_newest_first(listing),
        list_operation=listing,
        query=_query_of(listing.request, given),
        get_operation=getter,
        asked=_asked_of(getter),
        cells=lambda row, now: tuple(value_text(getattr(row, name), now) for name in names),
        facts=record_facts,
        empty=f"Nothing here yet.\n{NOUNS[noun]}",
        above=above,
    )


def is_newest_first(listing: AnyOperation) -> bool:
    return "newest first" in listing.summary


def _query_of(model: type[Request], given: dict[str, str]) -> Callable[[str, int, str | None], Request]:
    if not issubclass(model, PageRequest):
        return lambda group, limit, after: model.model_validate(given)
    return lambda group, limit, after: model.model_validate(given | {"limit": limit, "after": after})


def _asked_of(getter: AnyOperation | None) -> Callable[[str], Request] | None:
    if getter is None:
        return None
    model, name = getter.request, getter.path_fields[0]
    return lambda row_id: model.model_validate({name: row_id})


def _column(record: type[Record], name: str, place: int) -> Column:
    title = name.removesuffix("_id").removesuffix("_at").replace("_", " ").capitalize()
    if name.endswith("_at"):
        return Column(name, title, TIME_CELLS, align="right", drop=place)
    if place == 0:
        return Column(name, title, None, min_width=12)
    return Column(name, title, WORD_CELLS, drop=max(0, place - 1))


def value_text(value: object, now: datetime) -> Content:
    """Times as spans, absence as a dash, everything else through the gate."""
    match value:
        case None:
            return system_text("-", "$foreground-muted")
        case datetime() if value > now:
            return system_text(until(value, now), "$foreground-muted")
        case datetime():
            return system_text(ago(value, now), "$foreground-muted")
        case bool():
            return system_text("yes" if value else "no")
        case Id() | int() | float():
            return system_text(shown_value(value))
        case tuple() | list() | frozenset():
            return agent_text(", ".join(shown_value(item) for item in value) or "-", limit=LONG_TEXT)
        case _:
            return agent_text(shown_value(value), limit=LONG_TEXT)


def record_facts(record: Any, now: datetime) -> FactSheet:
    """Every field of a record, its name or id on top."""
    heading = Heading(agent_text(title_of(record), "bold", limit=300))
    fields = type(record).model_fields
    return FactSheet(
        (heading, *(Fact(name.replace("_", " "), value_text(getattr(record, name), now)) for name in fields))
    )


def title_of(record: Any) -> str:
    """What people call it."""
    for name in ("name", "full_name", "worker_id", "type"):
        if isinstance(value := getattr(record, name, None), str) and value:
            return value
    return str(record.id)
