"""What filters on threads, runs and approvals cost: a bounded stretch of an index, whatever the tables hold."""

import re
from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, NullPool, create_engine

from agent_console.database.address import sqlalchemy_url
from agent_console.domain.approvals import APPROVAL_FILTERS, ApprovalHistoryQuery, ApprovalQuery
from agent_console.domain.identity import AuthSource, Caller
from agent_console.domain.permissions import Role
from agent_console.domain.runs import RUN_FILTERS, RunQuery
from agent_console.domain.threads import THREAD_FILTERS, ThreadQuery
from agent_console.repository.postgres.policy.approval_filters import ApprovalMatch
from agent_console.repository.postgres.policy.approval_lists import decided, waiting, wanted_approvals
from agent_console.repository.postgres.registry.agent_words import AgentsSaid
from agent_console.repository.postgres.runs.filters import SEQS_APART, RunMatch
from agent_console.repository.postgres.runs.lists import newest_runs, wanted_runs
from agent_console.repository.postgres.threads.filters import ThreadMatch
from agent_console.repository.postgres.threads.walks import matching_threads, walked_threads
from agent_console.repository.postgres.walked_pages import WALKED_AT_MOST
from tests.conftest import FLEET_TEMPLATE
from tests.support.clusters import TemplateDatabase
from tests.support.fleet import Fleet
from tests.support.plans import plan_of

# One worker runs them all, so that the crowd is made once.
pytestmark = pytest.mark.xdist_group("conversation_filter_plans")

ROWS = 10_000
# Each a second after the other, the last one now, by time and by id.
AT = f"(now() - ({ROWS} - n) * interval '1 second')"
ID = (
    f"(lpad(to_hex((extract(epoch from {AT}) * 1000)::bigint), 12, '0')"
    " || '7000a000' || lpad(to_hex(n), 12, '0'))::uuid"
)
THREADS = f"""
    insert into threads (team_id, id, title, created_by_user_id, created_at)
    select %s, {ID}, 'thread ' || n, %s, {AT} from generate_series(1, {ROWS}) as n
"""
AGENTS = """
    insert into thread_participants (team_id, id, thread_id, participant_type, agent_id)
    select team_id, id, id, 'agent', %s from threads
"""
RUNS = """
    insert into runs (team_id, id, thread_id, requested_by_type, requested_by_user_id, target_agent_id, trace_id,
                      status, created_at, ended_at)
    select team_id, id, id, 'human', created_by_user_id, %s, gen_random_uuid(),
           case when title like '%%00' then 'running' else 'succeeded' end, created_at,
           case when title not like '%%00' then now() end
      from threads order by id
"""
APPROVALS = """
    insert into approvals (team_id, id, thread_id, from_agent_id, to_agent_id, route_id, route_version, trace_id,
                           envelope, digest, state, expires_at, created_at, decided_at)
    select team_id, id, id, %s, %s, id, 1, gen_random_uuid(), '{}', repeat('0', 64),
           case when title like '%%5' then 'pending' else 'expired' end, now() + interval '1 day', created_at,
           case when title not like '%%5' then created_at end
      from threads
"""


@pytest.fixture(scope="module")
def crowd(templates: TemplateDatabase) -> Iterator[Fleet]:
    """Many threads, each with a run and a request; a few of them wait for something."""
    templates.clone(FLEET_TEMPLATE, "filter_crowd")
    with Fleet(templates.cluster.dsn("filter_crowd")) as fleet:
        team_id, ana = fleet.team_id(), fleet.user_id("ana@example.com")
        atlas, beacon = fleet.agent_id("atlas"), fleet.agent_id("beacon")
        fleet.execute(THREADS, team_id, ana)
        fleet.execute(AGENTS, atlas)
        fleet.execute(RUNS, atlas)
        fleet.execute(APPROVALS, atlas, beacon)
        fleet.execute("analyze threads, thread_participants, runs, approvals")
        yield fleet
    templates.drop("filter_crowd")


@pytest.fixture(scope="module")
def connection(crowd: Fleet) -> Iterator[Connection]:
    with create_engine(sqlalchemy_url(crowd.administration), poolclass=NullPool).connect() as connected:
        yield connected


def caller(fleet: Fleet, role: Role) -> Caller:
    email = "ana@example.com" if role is Role.ADMIN else "ole@example.com"
    return Caller(
        team_id=fleet.team_id(),
        team="example",
        user_id=fleet.user_id(email),
        name="somebody",
        role=role,
        auth_source=AuthSource.DATABASE,
    )


LARGE = r"(?:threads|thread_participants|runs|approvals)"


def scans(plan: str) -> list[int]:
    """Rows that each scan of a large table gave or threw away."""
    given = re.finditer(
        rf"(Seq Scan|Scan).* on {LARGE}\b[^\n]*\(actual rows=([\d.]+) loops=(\d+)\)(.*?)(?=->|$)", plan, re.DOTALL
    )
    touched = []
    for scan in given:
        assert scan[1] != "Seq Scan", plan
        loops = int(scan[3])
        removed = re.findall(r"Rows Removed by (?:Index Recheck|Filter): (\d+)", scan[4])
        touched.append(int((float(scan[2]) + sum(map(int, removed))) * loops))
    assert touched, plan
    return touched


@pytest.mark.parametrize("role", [Role.ADMIN, Role.OPERATOR])
@pytest.mark.parametrize(
    "filter",
    [
        "zebra",
        "agent:atlas zebra",
        "waiting:run zebra",
        "waiting:approval",
        "!agent:atlas",
        "!waiting:run",
        "age:>1w",
    ],
)
def test_threads(crowd: Fleet, connection: Connection, filter: str, role: Role) -> None:
    query, asked = ThreadQuery(filter=filter), THREAD_FILTERS.read(filter)
    atlas = (crowd.agent_id("atlas"),)
    match = ThreadMatch(
        asked, AgentsSaid(*(atlas if said("agent") else () for said in (asked.wanted, asked.unwanted)))
    )
    who = caller(crowd, role)

    plan = plan_of(connection, matching_threads(who, query, match, walked_threads(who, query, match)))

    assert max(scans(plan)) <= WALKED_AT_MOST, plan


@pytest.mark.parametrize("role", [Role.ADMIN, Role.OPERATOR])
@pytest.mark.parametrize(
    ("filter", "most"),
    [
        ("zebra", 2 * WALKED_AT_MOST),
        ("!agent:atlas", 2 * WALKED_AT_MOST),
        ("status:succeeded zebra", 2 * WALKED_AT_MOST),
        ("age:<1m", SEQS_APART + 700),
        ("age:>1w", SEQS_APART),
    ],
)
def test_runs(crowd: Fleet, connection: Connection, filter: str, most: int, role: Role) -> None:
    query, asked = RunQuery(filter=filter), RUN_FILTERS.read(filter)
    match = RunMatch(asked, AgentsSaid((), (crowd.agent_id("atlas"),) if asked.unwanted("agent") else ()))
    who = caller(crowd, role)

    plan = plan_of(connection, wanted_runs(who, query, newest_runs(who, query, None, match), None, match))

    assert max(scans(plan)) <= most, plan


@pytest.mark.parametrize("filter", ["zebra", "!from:atlas", "age:>1w", "age:<1m"])
@pytest.mark.parametrize("waits", [True, False], ids=["waiting", "decided"])
def test_approvals(crowd: Fleet, connection: Connection, filter: str, waits: bool) -> None:
    query = ApprovalQuery(filter=filter) if waits else ApprovalHistoryQuery(filter=filter)
    asked = APPROVAL_FILTERS.read(filter)
    match = ApprovalMatch(asked, AgentsSaid((), (crowd.agent_id("atlas"),) if asked.unwanted("from") else ()))
    who = caller(crowd, Role.OPERATOR)

    walk = (waiting if waits else decided)(who, None, match)
    plan = plan_of(connection, wanted_approvals(who, query, walk, match, waits=waits))

    few = not waits and filter == "age:<1m"
    assert max(scans(plan)) <= (100 if few else WALKED_AT_MOST), plan
