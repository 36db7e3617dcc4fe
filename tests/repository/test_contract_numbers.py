"""Numbers where anything may stand: as far as a double reaches they come back as they were."""

from agent_console.domain.jobs import JobAsked, NewJob
from agent_console.repository.operations import JOBS_CREATE, JOBS_GET
from agent_console.repository.port import Repository

FAR = [1e308, -1e308, 1e-300, 0.1, 0.0, 2**63, -(2**63), 10**308 - 1]


async def test_a_number_that_can_be_kept_comes_back(repository: Repository) -> None:
    made = await repository.call(JOBS_CREATE, NewJob(type="report", payload={str(far): far for far in FAR}))
    read = await repository.call(JOBS_GET, JobAsked(job_id=made.id))

    for job in (made, read):
        assert {name: float(str(number)) for name, number in job.payload.items()} == {
            str(far): float(far) for far in FAR
        }
