"""Pages of what a caller may read out of much that it may not: a walk along one index that ends after a while.

A page that found little in so many rows is given as it is, with the place from which to walk on. So a page has an
upper bound of cost, whatever the table holds and however little of it the caller may read.
"""

from collections.abc import Callable
from typing import Any

from sqlalchemy import ColumnElement, RowMapping, Select, Subquery, select

from agent_console.repository.postgres.work import Work

WALKED_AT_MOST = 2_000

Kept = Callable[[Subquery], ColumnElement[bool]]
Ordered = Callable[[Subquery], tuple[ColumnElement[Any], ...]]


def walked(walk: Select[Any]) -> Subquery:
    """The rows that one page looks at; the walk is already in the order of its index."""
    return walk.limit(WALKED_AT_MOST).subquery("walked")


def kept_page(walk: Subquery, kept: Kept, order: Ordered, limit: int) -> Select[Any]:
    """One row more than the limit, to tell whether there is a next page."""
    return select(walk).where(kept(walk)).order_by(*order(walk)).limit(limit + 1)


def there_is(rows: Select[Any]) -> ColumnElement[bool]:
    """Whether one is found, looked for row by row of the walk: an `exists` might be answered by reading all there
    are, which costs as much as there is."""
    return rows.limit(1).scalar_subquery().is_not(None)


async def last_walked(work: Work, walk: Subquery, order: Ordered) -> RowMapping | None:
    """Where the walk ended; None when it came to the end of what there is."""
    end = select(walk).order_by(*order(walk)).offset(WALKED_AT_MOST - 1).limit(1)
    return (await work.connection.execute(end)).mappings().first()
