"""A superuser's session on one database: for each statement alone, or kept while a test lasts."""

import psycopg
from psycopg.rows import TupleRow


class Administration:
    """Connecting costs the server more than most statements do, so whoever asks often stays connected."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._stays = False
        self._kept: psycopg.Connection[TupleRow] | None = None

    def stay_connected(self) -> None:
        """From the next statement until `leave`."""
        self._stays = True

    def leave(self) -> None:
        self._stays = False
        self._hang_up()

    def execute(self, statement: str, values: tuple[object, ...]) -> list[TupleRow]:
        try:
            return self._rows(self._connection(), statement, values)
        except psycopg.OperationalError:
            # A test may have ended every session of the server, the kept one too: it never saw the statement.
            if self._kept is None or not self._kept.closed:
                raise
            self._hang_up()
            return self._rows(self._connection(), statement, values)
        finally:
            if not self._stays:
                self._hang_up()

    def _connection(self) -> psycopg.Connection[TupleRow]:
        if self._kept is None:
            self._kept = psycopg.connect(self._dsn, autocommit=True)
        return self._kept

    def _hang_up(self) -> None:
        if self._kept is not None:
            self._kept.close()
        self._kept = None

    @staticmethod
    def _rows(
        connection: psycopg.Connection[TupleRow], statement: str, values: tuple[object, ...]
    ) -> list[TupleRow]:
        cursor = connection.execute(statement.encode(), values)
        return cursor.fetchall() if cursor.description else []
