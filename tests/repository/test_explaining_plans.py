"""What an explanation and the statistics cost: bounded, however many agents and jobs there are."""

import re
from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, NullPool, create_engine

from agent_console.database.address import sqlalchemy_url
from agent_console.domain.explaining import AHEAD_CAP
from agent_console.domain.ids import LaneId
from agent_console.domain.lanes import Lane
from agent_console.repository.postgres.queue import able_agents
from agent_console.repository.postgres.queue.explaining import AHEAD, FACTS
from agent_console.repository.postgres.queue.stats import OLDEST, STATS
from tests.conftest import FLEET_TEMPLATE
from tests.support.clusters import TemplateDatabase
from tests.support.fleet import Fleet
from tests.support.many_agents import add_agents
from tests.support.plans import plan_of

pytestmark = pytest.mark.xdist_group("plans")

AGENTS = 6_000
JOBS = 10_000
LOOKED_AT = 300
FOUND_AT_MOST = 50


@pytest.fixture(scope="module")
def crowd(templates: TemplateDatabase) -> Iterator[Fleet]:
    """Many agents and many jobs, made once: nothing here changes them."""
    templates.clone(FLEET_TEMPLATE, "explained")
    fleet = Fleet(templates.cluster.dsn("explained"))
    add_agents(fleet, AGENTS, "tool:common:1.0")
    fleet.add_jobs(JOBS)
    fleet.execute("select fold_queue_moves(0, 1000)")
    fleet.execute("vacuum analyze")
    yield fleet
    templates.drop("explained")


@pytest.fixture
def connection(crowd: Fleet) -> Iterator[Connection]:
    with create_engine(sqlalchemy_url(crowd.administration), poolclass=NullPool).connect() as connection:
        yield connection


def rows_of(plan: str, table: str) -> int:
    """Rows that any scan of the table gave, kept or thrown away by its own filter."""
    given = r"\(actual[^)]*rows=([\d.]+) loops=(\d+)\)"
    scan = rf"Scan(?: Backward)?(?: using \w+)? on {table}\b[^\n]*{given}((?:\n(?!\s*->).*)*)"
    total = 0.0
    for match in re.finditer(scan, plan):
        loops = int(match[2])
        removed = re.search(r"Rows Removed by Filter: (\d+)", match[3])
        total += (float(match[1]) + (int(removed[1]) if removed else 0)) * loops
    return int(total)


@pytest.mark.parametrize("demand", ["tool:common", "tool:nobody"])
@pytest.mark.parametrize("search", ["EVERYBODY", "UNMET"])
def test_looking_for_agents_ends_at_the_cap(
    crowd: Fleet, connection: Connection, demand: str, search: str
) -> None:
    lane = Lane(LaneId.new(), None, (demand,), "scan", None, None, None)
    facts = able_agents._facts(crowd.team_id(), lane, able_agents.ANY_PRESENCE, FOUND_AT_MOST)
    facts |= {"looked_at": LOOKED_AT}

    plan = plan_of(connection, getattr(able_agents, search), facts)

    assert "Seq Scan on agents" not in plan, plan
    assert "Seq Scan on agent_runtime" not in plan, plan
    # Those who are looked at, the ten of the example fleet, and each that was found once more by its key.
    assert 1 <= rows_of(plan, "agent_runtime") <= LOOKED_AT + 10 + FOUND_AT_MOST + 10, plan
    assert rows_of(plan, "jobs") <= 100, plan


def test_the_place_in_a_lane_is_counted_as_far_as_the_cap(crowd: Fleet, connection: Connection) -> None:
    wanted = "select id, lane_id from jobs where type = 'bulk' order by id desc limit 1"
    ((last, lane_id),) = crowd.execute(wanted)
    facts = {"team_id": crowd.team_id(), "job_id": last, "lane_id": lane_id, "priority": 0}

    plan = plan_of(connection, AHEAD, facts)

    assert "jobs_claim_order_idx" in plan, plan
    assert "Seq Scan on jobs" not in plan, plan
    assert AHEAD_CAP <= rows_of(plan, "jobs") <= AHEAD_CAP + 1, plan


def test_what_is_known_of_a_job_is_found_by_key(crowd: Fleet, connection: Connection) -> None:
    last = crowd.one("select id from jobs where type = 'bulk' order by id desc limit 1")

    plan = plan_of(connection, FACTS, {"team_id": crowd.team_id(), "job_id": last})

    assert rows_of(plan, "jobs") == 1, plan
    assert "Seq Scan on agents" not in plan, plan
    assert "Seq Scan on users" not in plan, plan


def test_statistics_read_counters_and_no_jobs(crowd: Fleet, connection: Connection) -> None:
    stats = plan_of(connection, STATS, {"team_id": crowd.team_id()})
    oldest = plan_of(connection, OLDEST, {"team_id": crowd.team_id()})

    assert " on jobs" not in stats, stats
    assert rows_of(oldest, "jobs") == 1, oldest
