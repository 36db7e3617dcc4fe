"""A request of every operation that would be answered, and the same request about another thing."""

import json
import re
from collections.abc import Callable, Mapping

from pydantic import BaseModel

from agent_console.domain.errors import ConsoleError, Invalid
from agent_console.domain.ids import Id, JobId
from agent_console.domain.permissions import GRANTS, Permission, Role
from agent_console.repository.port import Repository
from tests.attacks.request_fields import Field, IdField, Kind, Values, id_fields
from tests.attacks.two_teams import TwoTeams
from tests.repository.test_permission_table import made_up
from tests.support.act_stage import new_name
from tests.support.acts import EXAMPLES
from tests.support.asking import ANA, OLE

ROLES = {
    ANA: Role.ADMIN,
    OLE: Role.OPERATOR,
    "atlas": Role.AGENT,
    "worker": Role.AGENT,
}


def _when(field: IdField) -> tuple[bool, bool]:
    """Who tries leaves traces of their own, and an agent that was brought along is one of ours from then on."""
    return field.operation.changes, field.name == "agents.import agent_id"


FIELDS = sorted(id_fields(), key=_when)

# What the usual example has no room for, or what can be done only once.
INSTEAD: Mapping[str, Callable[[TwoTeams], Values]] = {
    "agents.import agent_id": lambda _: {"name": new_name()},
    "audit.verify seal.team_id": lambda _: {"seal": {"position": 0, "hash": "0" * 64}},
    "collections.create bound_agent_id": lambda _: {"name": new_name(), "type": "local", "location": "/srv"},
    "collections.update bound_agent_id": lambda teams: {"collection_id": teams.ours["col"]},
    "jobs.cancel_many agent_id": lambda _: {},
    "jobs.cancel_many collection_id": lambda _: {},
    "jobs.retry_many agent_id": lambda _: {},
    "jobs.retry_many collection_id": lambda _: {},
    "jobs.reprioritise_many agent_id": lambda _: {"priority": 9},
    "jobs.reprioritise_many collection_id": lambda _: {"priority": 9},
}
WITHOUT = {"threads.grant agent_id": "user_id"}
ANOTHER_HELD = """
    insert into jobs
    select (jsonb_populate_record(j, jsonb_build_object('id', %s, 'idempotency_key', null, 'run_id', null))).*
      from jobs j
     where j.agent_id = %s and j.status = 'running'
     order by j.id
     limit 1
 returning id, attempt
"""
# Other ids, times and names of ours: what tells one call from the next, and nothing of whom was asked about.
PASSING = re.compile(r"\b[a-z]{3}_[0-9a-z]{26}\b|\bthing-\d+\b|\bagt_key_\w{8}\b|\d{4}-\d\d-\d\dT[\d:.]+Z")


def may_ask(who: str, field: IdField) -> bool:
    """A worker's token proves the same agent as its key does: only what agents alone may do is asked with it."""
    needed = field.operation.permission
    if who == "worker" and needed is not Permission.ACT_AS_AGENT:
        return False
    return needed is None or needed in GRANTS[ROLES[who]]


def has_its_own(field: Field[Kind]) -> bool:
    return field.name in INSTEAD or field.name in WITHOUT


async def valid(teams: TwoTeams, field: Field[Kind]) -> Values:
    """Values of a request that would be answered, about things that are ours."""
    operation = field.operation
    if field.name in INSTEAD:
        return INSTEAD[field.name](teams)
    if operation.name in EXAMPLES:
        values = await EXAMPLES[operation.name](teams.stage)
        values.pop(WITHOUT.get(field.name, ""), None)
        return values
    asked: dict[str, object] = made_up(operation).model_dump(mode="json", exclude_unset=True)
    for other in FIELDS:
        if other.operation is operation and other.path[0] in asked:
            asked = dict(other.filled(asked, teams.ours[other.kind.prefix]))
    return with_its_own_job(teams, asked)


def with_its_own_job(teams: TwoTeams, values: Values) -> Values:
    """A report on a job is about another one that atlas works on: one report may end it for all that follow."""
    if not values.keys() >= {"job_id", "attempt"}:
        return values
    fleet = teams.stage.fleet
    found = fleet.execute(ANOTHER_HELD, JobId.new(), fleet.agent_id("atlas"))
    held = {"job_id": str(JobId(str(found[0][0]))), "attempt": found[0][1]} if found else {}
    return {**values, **held}


async def answer(caller: Repository, field: IdField, values: Values, id_: Id) -> str:
    """All that the caller hears about this thing, except for its id."""
    operation = field.operation
    request = operation.request.model_validate(field.filled(values, id_))
    try:
        said: BaseModel = await caller.call(operation, request)
    except ConsoleError as error:
        text = json.dumps({"status": error.status, **error.body()})
    else:
        text = said.model_dump_json()
    return PASSING.sub("…", text.replace(str(id_), "<the id>"))


def is_refusal(answered: str) -> bool:
    return answered.startswith('{"status": 4')


def was_not_read(answered: str) -> bool:
    """The request itself was at fault, so that nobody looked whether there is such a thing."""
    return answered.startswith(f'{{"status": {Invalid.status}')
