"""What the parts of a filter mean as conditions on rows, whatever the rows are of."""

from collections.abc import Sequence
from typing import Any, TypeVar

from sqlalchemy import BIGINT, ColumnElement, String, and_, cast, func, literal, or_, select, text
from sqlalchemy.dialects.postgresql import UUID as UuidType

from agent_console.database.tables import agents
from agent_console.domain.errors import WrongId
from agent_console.domain.filters import Filter
from agent_console.domain.ids import Id, TeamId
from agent_console.repository.postgres.database_time import seconds

Kind = TypeVar("Kind", bound=Id)

AGE = "age"
# Ids are made by the clocks of those who make them, ages are told by the database's. So much may lie between them.
CLOCKS_APART_SECONDS = 600


def either(
    column: ColumnElement[Any], wanted: Sequence[object], unwanted: Sequence[object]
) -> ColumnElement[bool]:
    """One of the wanted values and none of the unwanted; what has no value is not an unwanted one."""
    parts: list[ColumnElement[bool]] = []
    if wanted:
        parts.append(column.in_(wanted))
    if unwanted:
        parts.append(or_(column.is_(None), column.not_in(unwanted)))
    return and_(text("true"), *parts)


def has_word(word: str, *columns: ColumnElement[str | None]) -> ColumnElement[bool]:
    """Found in one of these, in whatever case; what is looked for is no pattern."""
    wanted = func.lower(literal(word))
    return or_(*(func.strpos(func.lower(func.coalesce(column, "")), wanted) > 0 for column in columns))


def with_words(asked: Filter, *columns: ColumnElement[str | None]) -> ColumnElement[bool]:
    found = (has_word(word, *columns) for word in asked.words)
    missing = (~has_word(word, *columns) for word in asked.unwanted_words)
    return and_(text("true"), *found, *missing)


def id_said(word: str, kind: type[Kind]) -> Kind | None:
    try:
        return kind.parse(word)
    except WrongId:
        return None


def ids_said(asked: Filter, kind: type[Kind]) -> tuple[Kind, ...]:
    """Words that are ids of this kind."""
    return tuple(found for word in asked.words if (found := id_said(word, kind)) is not None)


def with_words_or_id(
    asked: Filter, kind: type[Id], id: ColumnElement[Any], *columns: ColumnElement[str | None]
) -> ColumnElement[bool]:
    """A word that is an id of this kind asks for the one that has it."""
    found = (
        id == said if (said := id_said(word, kind)) is not None else has_word(word, *columns)
        for word in asked.words
    )
    missing = (~has_word(word, *columns) for word in asked.unwanted_words)
    return and_(text("true"), *found, *missing)


def agent_name(team_id: TeamId, agent_id: ColumnElement[Any]) -> ColumnElement[str | None]:
    """By key and row by row: as a join it might be answered by reading all agents."""
    named = select(agents.c.name).where(agents.c.team_id == team_id, agents.c.id == agent_id)
    return named.correlate_except(agents).scalar_subquery()


def of_age(asked: Filter, created_at: ColumnElement[object]) -> ColumnElement[bool]:
    parts: list[ColumnElement[bool]] = []
    if (age := asked.older_than(AGE)) is not None:
        parts.append(created_at < func.now() - seconds(age))
    if (age := asked.younger_than(AGE)) is not None:
        parts.append(created_at > func.now() - seconds(age))
    return and_(text("true"), *parts)


def ids_of_age(asked: Filter, id: ColumnElement[object]) -> list[ColumnElement[bool]]:
    """Ids are in the order of time: of an index on them only the stretch of that age is walked."""
    parts: list[ColumnElement[bool]] = []
    if (age := asked.older_than(AGE)) is not None:
        parts.append(id < first_id(age - CLOCKS_APART_SECONDS))
    if (age := asked.younger_than(AGE)) is not None:
        parts.append(id > first_id(age + CLOCKS_APART_SECONDS))
    return parts


def first_id(seconds_ago: int) -> ColumnElement[Any]:
    """The least id that can be made at that moment: its first 48 bits are milliseconds."""
    then = func.floor(func.extract("epoch", func.now()) * 1000) - seconds_ago * 1000
    digits = func.lpad(func.to_hex(cast(func.greatest(then, 0), BIGINT)), 12, "0")
    return cast(func.concat(digits, literal("0" * 20, String)), UuidType)
