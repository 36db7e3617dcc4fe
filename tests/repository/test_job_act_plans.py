"""What an operator's acts cost: a batch looks at so many jobs and no more, whatever the table holds."""

import re
from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, NullPool, create_engine

from agent_console.database.address import sqlalchemy_url
from agent_console.domain.ids import CollectionId
from agent_console.domain.job_acts import JobSelection
from agent_console.domain.job_events import JobEventQuery
from agent_console.domain.states import JobStatus
from agent_console.repository.postgres.queue.bulk_jobs import next_jobs
from agent_console.repository.postgres.queue.cancelling import Cancel
from agent_console.repository.postgres.queue.job_changes import Act
from agent_console.repository.postgres.queue.job_events import story
from agent_console.repository.postgres.queue.pausing import HOLDERS
from agent_console.repository.postgres.queue.retrying import Retry
from tests.conftest import FLEET_TEMPLATE
from tests.support.clusters import TemplateDatabase
from tests.support.fleet import Fleet
from tests.support.plans import plan_of, rows_touched

# One worker runs them all, so that the crowd is made once.
pytestmark = pytest.mark.xdist_group("job act plans")

JOBS, REACH, STORY = 20_000, 1_000, 5_000
Q, D = JobStatus.QUEUED, JobStatus.DEAD_LETTER


@pytest.fixture(scope="module")
def crowd(templates: TemplateDatabase) -> Iterator[Fleet]:
    """Many that wait and many dead letters, made once: nothing here changes them."""
    templates.clone(FLEET_TEMPLATE, "acted_on")
    fleet = Fleet(templates.cluster.dsn("acted_on"))
    fleet.add_jobs(JOBS)
    fleet.add_jobs(JOBS, status="dead_letter", since="2031-01-01")
    fleet.execute(
        "insert into job_events (team_id, id, job_id, message)"
        " select j.team_id, new_id(), j.id, 'line' from jobs j, generate_series(1, 3)"
    )
    fleet.execute(
        "insert into job_events (team_id, id, job_id, message)"
        " select %s, new_id(), %s, 'line' from generate_series(1, %s)",
        *(fleet.team_id(), fleet.first_job("running"), STORY),
    )
    fleet.execute("analyze")
    yield fleet
    templates.drop("acted_on")


@pytest.fixture
def crowded(crowd: Fleet) -> Iterator[tuple[Fleet, Connection]]:
    with create_engine(sqlalchemy_url(crowd.administration), poolclass=NullPool).connect() as connection:
        yield crowd, connection


@pytest.mark.parametrize(
    ("asked", "act", "states"),
    [
        (JobSelection(status=(Q,)), Cancel(None), 1),
        (JobSelection(type="report"), Cancel(None), 4),
        (JobSelection(type="nowhere", status=(Q,)), Cancel(None), 1),
        (JobSelection(tool="nowhere"), Cancel(None), 4),
        (JobSelection(collection_id=CollectionId.parse("col_01h455vb4pex5vsknk084sn02q")), Cancel(None), 1),
        (JobSelection(status=(D,)), Retry(), 1),
    ],
    ids=lambda value: value.model_dump_json(exclude_unset=True) if isinstance(value, JobSelection) else "",
)
def test_a_batch_looks_at_so_many_and_no_more(
    crowded: tuple[Fleet, Connection], asked: JobSelection, act: Act, states: int
) -> None:
    fleet, connection = crowded

    plan = plan_of(connection, next_jobs(fleet.team_id(), asked, act, REACH))

    assert "Seq Scan on jobs" not in plan, plan
    # Those it looks at, in the window and once more where it is filtered.
    assert rows_touched(plan, "jobs") <= 2 * states * REACH + 100, plan


def test_who_holds_jobs_is_read_from_the_held_ones_alone(crowded: tuple[Fleet, Connection]) -> None:
    fleet, connection = crowded
    facts = {"team_id": fleet.team_id(), "at_most": 500}

    plan = plan_of(connection, HOLDERS, facts)

    assert "jobs_held_idx" in plan, plan
    assert rows_touched(plan, "jobs") <= 10, plan


@pytest.mark.parametrize("status", ["running", "queued"], ids=["a long story", "a short one"])
@pytest.mark.parametrize("deep", [False, True], ids=["first", "deep"])
def test_a_page_of_a_story_costs_a_page(crowded: tuple[Fleet, Connection], status: str, deep: bool) -> None:
    fleet, connection = crowded
    job_id = fleet.first_job(status)
    middle = fleet.one("select (min(seq) + max(seq)) / 2 from job_events where job_id = %s", job_id)
    assert isinstance(middle, int)
    query = JobEventQuery(job_id=job_id, limit=50, after_seq=middle if deep else None)

    plan = plan_of(connection, story(fleet.team_id(), query))

    assert "job_events_pkey" in plan, plan
    given = re.findall(r"on job_events.*?\(actual[^)]*rows=([\d.]+) loops=(\d+)\)", plan)
    assert sum(float(rows) * int(loops) for rows, loops in given) <= query.limit + 1, plan
