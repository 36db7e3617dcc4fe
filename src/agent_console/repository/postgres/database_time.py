"""Times and spans as the database tells them: its clock decides, never a client's."""

from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

NOW = select(func.now())


async def transaction_time(connection: AsyncConnection) -> datetime:
    """When the transaction began: one and the same for all that is written in it."""
    found: datetime = (await connection.execute(NOW)).scalar_one()
    return found


def seconds(count: int) -> ColumnElement[Any]:
    return func.make_interval(0, 0, 0, 0, 0, 0, count)


def minutes(count: int) -> ColumnElement[Any]:
    return func.make_interval(0, 0, 0, 0, 0, count)
