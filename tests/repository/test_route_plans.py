"""What routes cost to read: served by an index, touching about a page of rows, however large the policy is."""

from collections.abc import Iterator, Sequence

import pytest
from sqlalchemy import Connection, NullPool, create_engine

from agent_console.database.address import sqlalchemy_url
from agent_console.domain.ids import AgentId, RouteId
from agent_console.domain.kinds import RoutePolicy
from agent_console.domain.route_replays import REPLAYED_MOST
from agent_console.domain.routes import MatrixQuery, RouteQuery
from agent_console.repository.postgres.policy.route_changes import LAST_VERSIONS
from agent_console.repository.postgres.policy.route_matrix import wanted_agents, wanted_cells
from agent_console.repository.postgres.policy.route_replays import RECORDED
from agent_console.repository.postgres.policy.routes import versions, wanted_routes
from tests.conftest import FLEET_TEMPLATE
from tests.support.clusters import TemplateDatabase
from tests.support.fleet import Fleet
from tests.support.many_agents import NTH_ID, add_agents
from tests.support.plans import plan_of, rows_touched

# One worker runs them all, so that the crowd is made once.
pytestmark = pytest.mark.xdist_group("plans")

AGENTS = 3_000
ASKING = 300
ASKED_BY_EACH = 60
VERSIONS = 5_000
RECORDED_ROWS = 4_000
AGENT, PAGE = "('01990000-0000-7000-9000-' || lpad(to_hex({}), 12, '0'))::uuid", 51


def nth_agent(n: int) -> AgentId:
    return AgentId(f"01990000-0000-7000-9000-{n:012x}")


@pytest.fixture(scope="module")
def crowd(templates: TemplateDatabase) -> Iterator[Fleet]:
    """Many routes, one pair with a long history, and many recorded requests; nothing here changes them."""
    templates.clone(FLEET_TEMPLATE, "routed")
    fleet = Fleet(templates.cluster.dsn("routed"))
    add_agents(fleet, AGENTS)
    fleet.execute(
        "insert into a2a_routes (team_id, id, from_agent_id, to_agent_id, policy)"
        f" select %s, {NTH_ID.format('a')}, {AGENT.format('f')}, {AGENT.format('(f + d) %% %s + 1')},"
        " case when n %% 50 = 0 then 'blocked' else 'allowed' end"
        " from generate_series(1, %s) as f, generate_series(0, %s - 1) as d,"
        " lateral (select f * 1000 + d) as number (n)",
        *(fleet.team_id(), ASKING, ASKING, ASKED_BY_EACH),
    )
    fleet.execute(
        "insert into a2a_route_versions (team_id, route_id, version, from_agent_id, to_agent_id, policy)"
        f" select %s, {NTH_ID.format('a')}, n, %s, %s, 'allowed' from generate_series(1, %s) as n",
        *(fleet.team_id(), nth_agent(1), nth_agent(2), VERSIONS),
    )
    fleet.execute(
        "insert into audit_log (team_id, id, actor_type, actor_label, action, resource_type, resource_id,"
        f" metadata, event_hash) select %s, {NTH_ID.format('b')}, 'system', 'x', 'a2a.delegate.allowed', 'agent',"
        " 'x', '{}', sha256('x') from generate_series(1, %s) as n",
        *(fleet.team_id(), RECORDED_ROWS),
    )
    fleet.execute("vacuum analyze")
    yield fleet
    templates.drop("routed")


@pytest.fixture
def connection(crowd: Fleet) -> Iterator[Connection]:
    with create_engine(sqlalchemy_url(crowd.administration), poolclass=NullPool).connect() as connection:
        yield connection


Filter = tuple[RouteQuery, int | None, int | None]


@pytest.mark.parametrize(
    "asked",
    [
        (RouteQuery(), None, None),
        (RouteQuery(), 7, None),
        (RouteQuery(), None, 7),
        (RouteQuery(), 7, 8),
        (RouteQuery(policy=RoutePolicy.BLOCKED), None, None),
        (RouteQuery(policy=RoutePolicy.REQUIRES_HUMAN_APPROVAL), None, None),
    ],
    ids=["all", "from", "to", "pair", "policy", "policy of none"],
)
@pytest.mark.parametrize("deep", [False, True], ids=["first", "deep"])
def test_a_page_of_routes_costs_a_page(crowd: Fleet, connection: Connection, asked: Filter, deep: bool) -> None:
    query, of, to = asked
    if deep:
        middle = RouteId(f"01990000-0000-7000-a000-{ASKING // 2 * 1000:012x}")
        query = query.model_copy(update={"after": str(middle)})

    agents: Sequence[AgentId | None] = [None if n is None else nth_agent(n) for n in (of, to)]
    plan = plan_of(connection, wanted_routes(crowd.team_id(), query, *agents))

    assert "Seq Scan on a2a_routes" not in plan, plan
    assert rows_touched(plan, "a2a_routes") <= 2 * PAGE, plan


def test_a_page_of_a_long_history_costs_a_page(crowd: Fleet, connection: Connection) -> None:
    whole = versions(crowd.team_id(), nth_agent(1), nth_agent(2))

    plan = plan_of(connection, whole.limit(PAGE))

    assert rows_touched(plan, "a2a_route_versions") <= PAGE, plan


def test_the_last_version_of_a_pair_is_one_look(crowd: Fleet, connection: Connection) -> None:
    facts = {"team_id": crowd.team_id(), "of": [nth_agent(1)] * 2, "to": [nth_agent(2), nth_agent(3)]}

    plan = plan_of(connection, LAST_VERSIONS, facts)

    assert rows_touched(plan, "a2a_route_versions") <= 2, plan


def test_the_matrix_reads_its_agents_and_the_routes_among_them(crowd: Fleet, connection: Connection) -> None:
    names = plan_of(connection, wanted_agents(crowd.team_id(), MatrixQuery(after="n2")))
    chosen = [nth_agent(n) for n in range(1, 41)]
    cells = plan_of(connection, wanted_cells(crowd.team_id(), chosen))

    assert rows_touched(names, "agents") <= 2 * PAGE, names
    assert "Sort" not in names, names
    assert "Seq Scan on a2a_routes" not in cells, cells
    # An entry of the index and its row for each route of the chosen agents, and no other.
    assert rows_touched(cells, "a2a_routes") <= 2 * len(chosen) * ASKED_BY_EACH, cells


def test_a_replay_reads_no_more_than_it_replays(crowd: Fleet, connection: Connection) -> None:
    facts = {"team_id": crowd.team_id()}

    plan = plan_of(connection, RECORDED, facts)

    assert rows_touched(plan, "audit_log") <= REPLAYED_MOST + 1, plan
