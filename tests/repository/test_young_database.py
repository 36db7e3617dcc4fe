"""A database that was just made: what was planned while a table was empty must be cheap when it is full."""

from agent_console.domain.jobs import NewJob
from agent_console.domain.many_jobs import NewJobs
from agent_console.repository.operations.enqueueing import JOBS_CREATE_MANY
from agent_console.repository.postgres.identify import by_name
from agent_console.repository.postgres.repository import Backend, PostgresRepository
from tests.support.fleet import Fleet
from tests.support.until import until

JOBS = 300
CALLS = 3
EMPTY = "truncate jobs, job_events cascade"
PUT_IN = "select n_tup_ins from pg_stat_user_tables where relname = 'jobs'"
READ_WHOLE = "select seq_tup_read from pg_stat_user_tables where relname = 'jobs'"


async def test_no_new_job_reads_all_the_others(fleet: Fleet) -> None:
    fleet.execute(EMPTY)
    fleet.execute("analyze jobs")
    backend = Backend(fleet.working, pool_size=1)
    repository = PostgresRepository(backend, by_name("example", None))

    for jobs in (1, *(JOBS,) * CALLS):
        await repository.call(JOBS_CREATE_MANY, NewJobs(jobs=(NewJob(type="index", payload={}),) * jobs))
    await backend.close()

    # A session that ends counts what it did.
    await until(lambda: fleet.one(PUT_IN) == 1 + JOBS * CALLS)
    assert fleet.one(READ_WHOLE) == 0
