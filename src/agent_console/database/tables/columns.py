"""The few column and constraint shapes every table is made of.

Every table leads its keys with `team_id`, and every foreign key carries it: a row of one team cannot refer
to a row of another, and the same key distributes the tables when one machine is not enough.
"""

from typing import Any

from sqlalchemy import (
    CheckConstraint,
    Column,
    DateTime,
    ForeignKeyConstraint,
    MetaData,
    PrimaryKeyConstraint,
    Text,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator

from agent_console.domain.ids import Id, TeamId, UserId

metadata = MetaData()


class IdType(TypeDecorator[Id]):
    """A uuid column that gives back the typed id of its entity."""

    impl = Uuid
    cache_ok = True

    def __init__(self, kind: type[Id]) -> None:
        super().__init__()
        self.kind = kind

    def process_result_value(self, value: Any, dialect: Dialect) -> Id | None:
        return None if value is None else self.kind.of(value)


def team() -> Column[TeamId]:
    return Column("team_id", IdType(TeamId), nullable=False)


def key(kind: type[Id]) -> Column[Id]:
    return Column("id", IdType(kind), nullable=False)


def ref(name: str, kind: type[Id], *, required: bool = False) -> Column[Id]:
    return Column(name, IdType(kind), nullable=not required)


def user_ref(name: str, *, required: bool = False) -> Column[Id]:
    return ref(name, UserId, required=required)


def moment(name: str, *, required: bool = False, default: str | None = None) -> Column[Any]:
    return Column(
        name,
        DateTime(timezone=True),
        nullable=not required,
        server_default=None if default is None else text(default),
    )


def created() -> Column[Any]:
    return moment("created_at", required=True, default="now()")


def updated() -> Column[Any]:
    return moment("updated_at", required=True, default="now()")


def words(name: str, *, required: bool = False, default: str | None = None) -> Column[str]:
    return Column(
        name, Text, nullable=not required, server_default=None if default is None else text(f"'{default}'")
    )


def json_object(name: str, *, required: bool = True) -> Column[Any]:
    return Column(
        name, JSONB(none_as_null=True), nullable=not required, server_default=text("'{}'") if required else None
    )


def json_array(name: str, *, required: bool = True) -> Column[Any]:
    return Column(
        name, JSONB(none_as_null=True), nullable=not required, server_default=text("'[]'") if required else None
    )


def keyed(table: str) -> PrimaryKeyConstraint:
    """The key (team_id, id)."""
    return PrimaryKeyConstraint("team_id", "id", name=f"{table}_pkey")


def primary(table: str) -> tuple[PrimaryKeyConstraint, CheckConstraint]:
    """The key, and the rule that an id is a UUIDv7."""
    return (
        keyed(table),
        CheckConstraint("get_byte(uuid_send(id), 6) >> 4 = 7", name=f"{table}_id_v7"),
    )


def points(table: str, column: str, target: str, *, on_delete: str | None = None) -> ForeignKeyConstraint:
    """A foreign key that carries the team."""
    return ForeignKeyConstraint(
        ["team_id", column],
        [f"{target}.team_id", f"{target}.id"],
        name=f"{table}_{column}_fkey",
        ondelete=on_delete,
    )


def in_team(table: str) -> ForeignKeyConstraint:
    return ForeignKeyConstraint(["team_id"], ["teams.id"], name=f"{table}_team_id_fkey")


def check(name: str, rule: str) -> CheckConstraint:
    return CheckConstraint(rule, name=name)


def one_of(table: str, column: str, values: type[Any]) -> CheckConstraint:
    listed = ", ".join(f"'{value.value}'" for value in values)
    return CheckConstraint(f"{column} in ({listed})", name=f"{table}_{column}_known")


def at_most(table: str, column: str, length: int) -> CheckConstraint:
    return CheckConstraint(f"char_length({column}) <= {length}", name=f"{table}_{column}_length")


def not_blank(table: str, column: str, length: int) -> CheckConstraint:
    return CheckConstraint(
        f"btrim({column}) <> '' and char_length({column}) <= {length}", name=f"{table}_{column}_given"
    )


def sha256_hex(table: str, column: str) -> CheckConstraint:
    return CheckConstraint(f"{column} ~ '^[0-9a-f]{{64}}$'", name=f"{table}_{column}_sha256")


def is_object(table: str, column: str) -> CheckConstraint:
    return CheckConstraint(f"jsonb_typeof({column}) = 'object'", name=f"{table}_{column}_object")


def is_array(table: str, column: str) -> CheckConstraint:
    return CheckConstraint(f"jsonb_typeof({column}) = 'array'", name=f"{table}_{column}_array")


def clean_list(table: str, column: str) -> CheckConstraint:
    """A JSON array of trimmed, non-empty, distinct strings (the function comes with the first migration).

    Not for hot tables: PostgreSQL checks every rule again on every update.
    """
    return CheckConstraint(f"is_clean_list({column})", name=f"{table}_{column}_clean")
