"""Keyset pages: the cursor is the last id of the page before, so a page costs the same at any depth."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from agent_console.domain.errors import Invalid, WrongId
from agent_console.domain.ids import Id
from agent_console.domain.records import Page, Record

Shown = TypeVar("Shown", bound=Record)
Kind = TypeVar("Kind", bound=Id)


def no_such_page() -> Invalid:
    return Invalid(
        "`after` is not the `next` of a page of this list.",
        hint="Begin anew without `after`, and pass on the `next` of each page as it is.",
        details={"field": "after"},
    )


def position(after: str | None, kind: type[Kind]) -> Kind | None:
    if after is None:
        return None
    try:
        return kind.parse(after)
    except WrongId as error:
        raise no_such_page() from error


def page_of(page: type[Page[Shown]], rows: Sequence[Mapping[str, Any]], limit: int, kind: type[Id]) -> Page[Shown]:
    """One row more than the limit was asked for: it only says that there is a next page."""
    shown = rows[:limit]
    following = str(kind.of(shown[-1]["id"])) if len(rows) > limit else None
    return page.model_validate({"items": [dict(row) for row in shown], "next": following})
