"""What an agent of the fleet would get of the jobs that are bound to it, taken as the queue itself takes them."""

from uuid import UUID

from psycopg.types.json import Jsonb

from agent_console.domain.ids import JobId
from tests.support.fleet import Fleet

TAKE = "select standing, job_id from take_turns(%s, %s, '{}', '{}', '{}', null, null)"


def taken(fleet: Fleet, agent: str, at_most: int = 50) -> tuple[str, list[JobId]]:
    """How the agent stands, and the jobs it got, which it starts at once."""
    fleet.execute("update agents set max_concurrent_jobs = %s where name = %s", at_most, agent)
    turn = {"n": 1, "agent_id": str(UUID(int=fleet.agent_id(agent).int)), "wants": at_most, "lease": 120}
    rows = fleet.execute(TAKE, fleet.team_id(), Jsonb([turn | {"starts": True}]))
    return str(rows[0][0]), [JobId.of(job_id) for _, job_id in rows if isinstance(job_id, UUID)]
