"""The database itself, as a doctor looks at it."""

from agent_console.domain.database_state import DatabaseState
from agent_console.domain.permissions import Permission
from agent_console.domain.records import Nothing
from agent_console.repository.operations.declared import AnyOperation, Operation, Verb

DATABASE_STATE = Operation(
    name="database.state",
    summary="How the database is: version, schema, clock, settings that matter, and the rights it is used with.",
    verb=Verb.GET,
    path="/v1/database/state",
    request=Nothing,
    answer=DatabaseState,
    permission=Permission.SEE_FLEET,
)

NOUNS = {"database": "The database behind everything, as `doctor` looks at it."}

DATABASE: tuple[AnyOperation, ...] = (DATABASE_STATE,)
