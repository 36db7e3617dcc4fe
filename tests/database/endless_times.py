"""Reading times without end, which psycopg refuses because no datetime can tell them."""

from datetime import UTC, datetime

from psycopg.abc import Buffer
from psycopg.types.datetime import TimestamptzLoader

AT_ONCE = datetime.min.replace(tzinfo=UTC)


class EndlessTimes(TimestamptzLoader):
    """-infinity is read as the first of all times."""

    def load(self, data: Buffer) -> datetime:
        return AT_ONCE if bytes(data) == b"-infinity" else super().load(data)
