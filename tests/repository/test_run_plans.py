"""What lists and look-ups of runs and approvals cost: an index each, and a bound, whatever the tables hold."""

from collections.abc import Iterator
from uuid import UUID

import pytest
from sqlalchemy import Connection, NullPool, create_engine, select, text

from agent_console.database.address import sqlalchemy_url
from agent_console.domain.approvals import ApprovalHistoryQuery, ApprovalQuery
from agent_console.domain.identity import AuthSource, Caller
from agent_console.domain.ids import ThreadId
from agent_console.domain.permissions import Role
from agent_console.domain.runs import RunQuery
from agent_console.domain.states import RunStatus
from agent_console.repository.postgres.duties.approvals import TEAMS_WITH_EXPIRED, TEAMS_WITH_RUNS_OVER
from agent_console.repository.postgres.duties.runs import TEAMS_WITH_OVERDUE
from agent_console.repository.postgres.policy.approval_lists import decided, waiting, wanted_approvals
from agent_console.repository.postgres.runs.lists import newest_runs, wanted_runs
from agent_console.repository.postgres.runs.traces import runs_of_trace, waits_of_trace
from agent_console.repository.postgres.walked_pages import WALKED_AT_MOST
from tests.conftest import FLEET_TEMPLATE
from tests.support.clusters import TemplateDatabase
from tests.support.conversations import add_thread
from tests.support.fleet import Fleet
from tests.support.plans import plan_of, rows_touched

# One worker runs them all, so that the crowd is made once.
pytestmark = pytest.mark.xdist_group("run_plans")

ROWS = 20_000
ID = "(lpad(to_hex(1900000000000 + n), 12, '0') || '7000a000' || lpad(to_hex(n), 12, '0'))::uuid"
RUNS = f"""
    insert into runs (team_id, id, thread_id, requested_by_type, requested_by_user_id, target_agent_id, trace_id,
                      status, ended_at, deadline_at)
    select %s, {ID}, %s, 'human', %s, %s, gen_random_uuid(),
           case when n %% 2 = 0 then 'succeeded' else 'failed' end, now() - interval '1 day', now()
      from generate_series(1, {ROWS}) as n
"""
APPROVALS = f"""
    insert into approvals (team_id, id, thread_id, from_agent_id, to_agent_id, route_id, route_version, trace_id,
                           parent_run_id, envelope, digest, state, expires_at, decided_at)
    select %s, {ID}, %s, %s, %s, {ID}, 1, gen_random_uuid(), {ID}, '{{}}', repeat('0', 64),
           case when n %% 2 = 0 then 'pending' else 'expired' end, now() + n * interval '1 minute',
           case when n %% 2 = 1 then now() - n * interval '1 second' end
      from generate_series(1, {ROWS}) as n
"""


@pytest.fixture(scope="module")
def crowd(templates: TemplateDatabase) -> Iterator[Fleet]:
    """Many runs and approvals in a thread that only its owner may read."""
    templates.clone(FLEET_TEMPLATE, "run_crowd")
    with Fleet(templates.cluster.dsn("run_crowd")) as fleet:
        team_id, ana = fleet.team_id(), fleet.user_id("ana@example.com")
        thread_id = add_thread(fleet, "ana@example.com")
        atlas, beacon = fleet.agent_id("atlas"), fleet.agent_id("beacon")
        fleet.execute(RUNS, team_id, thread_id, ana, atlas)
        fleet.execute(APPROVALS, team_id, thread_id, atlas, beacon)
        fleet.execute("analyze")
        yield fleet
    templates.drop("run_crowd")


@pytest.fixture
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


def thread_of(fleet: Fleet) -> ThreadId:
    found = fleet.one("select thread_id from runs limit 1")
    assert isinstance(found, UUID)
    return ThreadId.of(found)


@pytest.mark.parametrize("role", [Role.ADMIN, Role.OPERATOR])
@pytest.mark.parametrize("kind", ["all", "status", "agent", "agent and status", "thread", "deep"])
def test_a_page_of_runs_has_an_upper_bound(crowd: Fleet, connection: Connection, role: Role, kind: str) -> None:
    query = {
        "all": RunQuery(),
        "status": RunQuery(status=(RunStatus.SUCCEEDED, RunStatus.FAILED)),
        "agent": RunQuery(target_agent_id=crowd.agent_id("atlas")),
        "agent and status": RunQuery(target_agent_id=crowd.agent_id("beacon"), status=(RunStatus.SUCCEEDED,)),
        "thread": RunQuery(thread_id=thread_of(crowd), status=(RunStatus.FAILED,)),
        "deep": RunQuery(after=str(ROWS // 2)),
    }[kind]
    walk = newest_runs(caller(crowd, role), query, query.thread_id)

    plan = plan_of(connection, wanted_runs(caller(crowd, role), query, walk, query.thread_id))

    assert "Seq Scan on runs" not in plan, plan
    little = role is Role.ADMIN and kind != "thread"
    assert rows_touched(plan, "runs", "approvals") <= (200 if little else 3 * WALKED_AT_MOST), plan


@pytest.mark.parametrize("role", [Role.ADMIN, Role.OPERATOR])
@pytest.mark.parametrize("waits", [True, False], ids=["waiting", "decided"])
def test_a_page_of_approvals_has_an_upper_bound(
    crowd: Fleet, connection: Connection, role: Role, waits: bool
) -> None:
    query = ApprovalQuery() if waits else ApprovalHistoryQuery()
    walk = (waiting if waits else decided)(caller(crowd, role), None)

    plan = plan_of(connection, wanted_approvals(caller(crowd, role), query, walk, waits=waits))

    assert "Seq Scan on approvals" not in plan, plan
    assert rows_touched(plan, "runs", "approvals") <= (200 if role is Role.ADMIN else 3 * WALKED_AT_MOST), plan


def test_a_trace_reads_its_own_runs_and_nothing_else(crowd: Fleet, connection: Connection) -> None:
    trace_id = crowd.one("select trace_id from runs limit 1")
    assert isinstance(trace_id, UUID)
    ana = caller(crowd, Role.ADMIN)

    parts = [part(ana, trace_id).subquery() for part in (runs_of_trace, waits_of_trace)]
    plans = [plan_of(connection, select(part)) for part in parts]

    assert max(rows_touched(plan, "runs", "approvals") for plan in plans) <= 2, plans
    assert "runs_trace_idx" in plans[0]
    assert "approvals_trace_idx" in plans[1]


@pytest.mark.parametrize(
    "duty",
    [TEAMS_WITH_EXPIRED, TEAMS_WITH_RUNS_OVER, TEAMS_WITH_OVERDUE],
    ids=["approvals", "approvals of runs that ended", "runs"],
)
def test_a_round_of_a_duty_with_nothing_to_do_reads_next_to_nothing(
    crowd: Fleet, connection: Connection, duty: object
) -> None:
    found = connection.execute(text(f"explain (analyze, timing off) {duty}"))

    plan = "\n".join(row[0] for row in found)
    assert rows_touched(plan, "runs", "approvals") <= 2, plan
