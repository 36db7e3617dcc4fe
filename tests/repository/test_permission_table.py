"""Who may what, asked of every declared operation: the table is derived, so no operation can be left out."""

from collections.abc import Sequence
from typing import Any

import pytest

from agent_console.domain.errors import ConsoleError, Forbidden, Internal, Unauthorized
from agent_console.domain.ids import KINDS
from agent_console.domain.permissions import GRANTS, Permission, Role
from agent_console.domain.records import Request
from agent_console.repository.operations import OPERATIONS, AnyOperation
from agent_console.repository.port import Repository
from tests.repository.conftest import ADMIN, OPERATOR, VIEWER, OpenRepository
from tests.support.acting_agent import acting_agent
from tests.support.fleet import Fleet

PEOPLE = {Role.ADMIN: ADMIN, Role.OPERATOR: OPERATOR, Role.VIEWER: VIEWER}
GUARDED = tuple(operation for operation in OPERATIONS if not operation.public)
# They say when somebody was here, whatever was asked.
SIGNS_OF_LIFE = ("last_seen_at", "last_used_at")

Schema = dict[str, Any]


def made_up(operation: AnyOperation) -> Request:
    """A request the operation can read, about things that do not exist."""
    schema = operation.request.model_json_schema()
    value = _example(schema, schema.get("$defs", {}))
    request: Request = operation.request.model_validate(value)
    return request


def _example(schema: Schema, shared: Schema) -> object:
    """The smallest value a schema allows; where that can't be told, the field has an example of its own."""
    if "$ref" in schema:
        return _example(shared[schema["$ref"].rpartition("/")[2]], shared)
    if kind := next((kind for kind in KINDS.values() if kind.__name__ == schema.get("title")), None):
        return str(kind.new())
    for given in ("examples", "enum"):
        if given in schema:
            return schema[given][0]
    if "anyOf" in schema:
        return _example(schema["anyOf"][0], shared)
    if "properties" in schema:
        return {name: _example(schema["properties"][name], shared) for name in schema.get("required", [])}
    if schema.get("type") == "array":
        return [_example(schema["items"], shared) for _ in range(schema.get("minItems", 0))]
    return _plain_example(schema)


def _plain_example(schema: Schema) -> object:
    match schema.get("type"):
        case "object":
            return {f"key{n}": "x" for n in range(schema.get("minProperties", 0))}
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return True
        case "string" if schema.get("format") == "date-time":
            return "2099-01-01T00:00:00Z"
        case _:
            return "x" * max(1, schema.get("minLength", 1))


def contents(fleet: Fleet) -> dict[object, object]:
    """A fingerprint of every table; counts, seals and how the duties go are kept by duties, whoever does what."""
    tables = fleet.execute(
        "select relname from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace and relname"
        " not in ('queue_moves', 'queue_counts', 'queue_tallies', 'audit_seals', 'audit_heads', 'duty_rounds')"
    )
    without = " ".join(f"- '{column}'" for column in SIGNS_OF_LIFE)
    prints = (
        f"select '{table}', md5(coalesce(string_agg(line, ' ' order by line), ''))"
        f" from (select (to_jsonb(t) {without})::text as line from {table} t) as lines"
        for (table,) in tables
    )
    return {row[0]: row[1] for row in fleet.execute(" union all ".join(prints))}


async def outcome(repository: Repository, operation: AnyOperation) -> type[ConsoleError] | None:
    try:
        await repository.call(operation, made_up(operation))
    except ConsoleError as error:
        return type(error)
    return None


def guarded(request: pytest.FixtureRequest) -> Sequence[AnyOperation]:
    """The server asks the same repository for every right: over HTTP every fourth operation shows it."""
    return GUARDED[::4] if "http" in request.node.name else GUARDED


def may(role: Role, operation: AnyOperation) -> bool:
    return operation.permission is None or operation.permission in GRANTS[role]


@pytest.mark.rule("U002-2")
@pytest.mark.parametrize("role", PEOPLE)
async def test_every_operation_asks_for_its_right_before_anything_else(
    open_repository: OpenRepository, fleet: Fleet, role: Role, request: pytest.FixtureRequest
) -> None:
    person = await open_repository(PEOPLE[role])
    allowed = [operation for operation in guarded(request) if may(role, operation)]
    refused = [operation for operation in guarded(request) if not may(role, operation)]
    before = contents(fleet)

    wrongly_allowed = [
        operation.name for operation in refused if await outcome(person, operation) is not Forbidden
    ]
    after_refusals = contents(fleet)
    wrongly_refused = [
        operation.name
        for operation in allowed
        if await outcome(person, operation) in (Forbidden, Unauthorized, Internal)
    ]

    assert wrongly_allowed == []
    assert after_refusals == before
    assert wrongly_refused == []


async def test_an_agents_key_opens_no_operation_of_a_person(
    repository: Repository, fleet: Fleet, request: pytest.FixtureRequest
) -> None:
    async with acting_agent(repository, fleet) as atlas:
        before = contents(fleet)

        let_through = [
            operation.name
            for operation in guarded(request)
            if not may(Role.AGENT, operation) and await outcome(atlas, operation) is not Forbidden
        ]

        assert let_through == []
        assert contents(fleet) == before


@pytest.mark.rule("U002-2")
def test_connectors_collections_people_and_settings_are_an_administrators() -> None:
    nouns = ("connectors", "collections", "users", "settings")
    changing = [operation for operation in GUARDED if operation.changes and operation.noun in nouns]

    others = {operation.name for operation in changing if operation.permission is not Permission.ADMINISTER}

    assert others == {"collections.refresh", "connectors.report"}


def test_an_example_can_be_made_of_every_request() -> None:
    """Where this fails, give the field an example: Field(examples=["…"])."""
    unreadable = {}
    for operation in GUARDED:
        try:
            made_up(operation)
        except ValueError as error:
            unreadable[operation.name] = str(error)

    assert unreadable == {}
