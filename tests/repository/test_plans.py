"""What each list costs: served by an index, touching about a page of rows, whatever the table holds."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, NullPool, create_engine

from agent_console.database.address import sqlalchemy_url
from agent_console.database.tables import jobs
from agent_console.domain.ids import JobId
from agent_console.domain.jobs import JOB_FILTERS, JobQuery
from agent_console.domain.list_order import ListOrder
from agent_console.domain.states import JobStatus
from agent_console.repository.postgres.queue.job_filters import JobMatch, walked_jobs
from agent_console.repository.postgres.queue.jobs import JOB_COLUMNS, filtered_page, newest_jobs, with_names
from agent_console.repository.postgres.queue.stats import DEPTHS
from agent_console.repository.postgres.walked_pages import WALKED_AT_MOST
from tests.conftest import FLEET_TEMPLATE
from tests.support.clusters import TemplateDatabase
from tests.support.fleet import Fleet
from tests.support.plans import plan_of, rows_touched

# One worker runs them all, so that the crowd is made once.
pytestmark = pytest.mark.xdist_group("plans")

JOBS = 30_000
Q, R, S, F = JobStatus.QUEUED, JobStatus.RUNNING, JobStatus.SUCCEEDED, JobStatus.FAILED


@pytest.fixture(scope="module")
def crowd(templates: TemplateDatabase) -> Iterator[Fleet]:
    """Many jobs, made once: nothing here changes them."""
    templates.clone(FLEET_TEMPLATE, "crowd")
    fleet = Fleet(templates.cluster.dsn("crowd"))
    fleet.add_jobs(JOBS, status="succeeded")
    fleet.add_jobs(JOBS, status="queued", type="crawl", since="2031-01-01")
    fleet.execute("analyze")
    yield fleet
    templates.drop("crowd")


@pytest.fixture
def crowded(crowd: Fleet) -> Iterator[tuple[Fleet, Connection]]:
    with create_engine(sqlalchemy_url(crowd.administration), poolclass=NullPool).connect() as connection:
        yield crowd, connection


@pytest.mark.parametrize(
    "query",
    [
        JobQuery(),
        JobQuery(status=(Q,)),
        JobQuery(status=(Q, R, S, F)),
        JobQuery(status=(R,)),
        JobQuery(type="report"),
        JobQuery(tool="deploy"),
    ],
    ids=lambda query: query.model_dump_json(exclude_unset=True),
)
@pytest.mark.parametrize("deep", [False, True], ids=["first", "deep"])
def test_a_page_of_jobs_costs_a_page(crowded: tuple[Fleet, Connection], query: JobQuery, deep: bool) -> None:
    fleet, connection = crowded
    if deep:
        middle = fleet.one("select id from jobs order by id offset %s limit 1", JOBS)
        assert hasattr(middle, "int")
        query = query.model_copy(update={"after": str(JobId(int=middle.int))})

    plan = plan_of(connection, with_names(newest_jobs(fleet.team_id(), query).subquery()))

    assert "Seq Scan on jobs" not in plan, plan
    assert rows_touched(plan, "jobs") <= 100 * max(1, len(query.status)), plan


@pytest.mark.parametrize(
    "filter",
    ["nothing-like-this", "!type:bulk !type:crawl", "status:queued type:bulk", "age:<1s", "status:failed bulk"],
)
@pytest.mark.parametrize("order", list(ListOrder))
def test_a_filter_looks_at_a_bounded_stretch_whatever_it_finds(
    crowded: tuple[Fleet, Connection], filter: str, order: ListOrder
) -> None:
    fleet, connection = crowded
    query = JobQuery(filter=filter, order=order)
    match = JobMatch(JOB_FILTERS.read(filter))

    walk = walked_jobs(fleet.team_id(), query, match, (jobs.c.team_id, *JOB_COLUMNS))
    plan = plan_of(connection, filtered_page(query, match, walk))

    assert "Seq Scan on jobs" not in plan, plan
    assert rows_touched(plan, "jobs") <= 3 * WALKED_AT_MOST, plan


def test_an_age_is_a_stretch_of_an_index(crowded: tuple[Fleet, Connection]) -> None:
    fleet, connection = crowded
    query = JobQuery(filter="age:>1h")
    match = JobMatch(JOB_FILTERS.read("age:>1h"))

    walk = walked_jobs(fleet.team_id(), query, match, (jobs.c.team_id, *JOB_COLUMNS))
    plan = plan_of(connection, filtered_page(query, match, walk))

    # All jobs of the crowd were made later, by their ids.
    assert rows_touched(plan, "jobs") <= 100, plan


def test_counting_the_queue_never_walks_it(crowded: tuple[Fleet, Connection]) -> None:
    fleet, connection = crowded
    parameters = {"team_id": fleet.team_id()}

    plan = plan_of(connection, DEPTHS, parameters)

    assert " on jobs" not in plan, plan
