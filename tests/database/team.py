"""A team in a database, and the rows that a test writes for it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import psycopg
from psycopg import sql
from psycopg.rows import TupleRow, dict_row
from psycopg.types.json import Jsonb

from agent_console.domain.ids import TeamId, UserId

Row: TypeAlias = dict[str, object]
Connection: TypeAlias = psycopg.Connection[TupleRow]

# The columns by which an inserted row is found again.
KEYS = (
    "team_id", "id", "agent_id", "connector_id", "lane_id", "route_id", "approval_id", "audit_id", "name",
    "shard", "duty", "revision",
)  # fmt: skip


@dataclass(frozen=True)
class Team:
    """A team with one person in it, and the connection its rows are written on."""

    connection: Connection
    team_id: TeamId
    user_id: UserId

    def insert(self, table: str, row: Mapping[str, object]) -> Row:
        given = {name: value(self) if callable(value) else value for name, value in row.items()}
        statement = sql.SQL("insert into {} ({}) values ({})").format(
            sql.Identifier(table),
            sql.SQL(", ").join(map(sql.Identifier, given)),
            sql.SQL(", ").join(sql.Placeholder() * len(given)),
        )
        self.connection.execute(statement, [_adapted(value) for value in given.values()])
        return given

    def execute(self, statement: str, *values: object) -> list[Row]:
        """Rows by column name; `%s` in the statement takes the values in turn."""
        with self.connection.cursor(row_factory=dict_row) as cursor:
            cursor.execute(statement.encode(), values)
            return cursor.fetchall() if cursor.description else []

    def stored(self, table: str, row: Mapping[str, object]) -> Row:
        """What the table holds now of an inserted row."""
        named = {name: value for name, value in row.items() if name in KEYS and value is not None}
        where = " and ".join(f"{name} = %s" for name in named)
        (found,) = self.execute(f"select * from {table} where {where}", *named.values())
        return found


def _adapted(value: object) -> object:
    return Jsonb(value) if isinstance(value, (dict, list)) else value
