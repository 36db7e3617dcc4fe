"""What the overview and the lists of agents cost where most agents have been dead for years."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, NullPool, TextClause, create_engine

from agent_console.database.address import sqlalchemy_url
from agent_console.domain.agents import AgentQuery
from agent_console.domain.states import JOB_HELD, Presence
from agent_console.repository.postgres.attention import SILENT
from agent_console.repository.postgres.queue.stats import BOUND_TO_AGENT, OF_CONNECTOR
from agent_console.repository.postgres.registry.agents import agents_asked_for, agents_in_error
from agent_console.repository.postgres.registry.users import administrators_and
from tests.conftest import FLEET_TEMPLATE
from tests.support.clusters import TemplateDatabase
from tests.support.fleet import Fleet
from tests.support.many_agents import add_agents
from tests.support.plans import plan_of, rows_touched

# One worker runs them all, so that the crowd is made once.
pytestmark = pytest.mark.xdist_group("plans")

AGENTS = 30_000
JOBS = 10_000


@pytest.fixture(scope="module")
def crowd(templates: TemplateDatabase) -> Iterator[Fleet]:
    """Many agents that went away and a queue that waits, made once: nothing here changes them."""
    templates.clone(FLEET_TEMPLATE, "graveyard")
    fleet = Fleet(templates.cluster.dsn("graveyard"))
    add_agents(fleet, AGENTS, presence="offline")
    fleet.add_jobs(JOBS)
    fleet.execute("select fold_queue_moves(0, 1000)")
    fleet.execute("vacuum analyze")
    yield fleet
    templates.drop("graveyard")


@pytest.fixture
def connection(crowd: Fleet) -> Iterator[Connection]:
    with create_engine(sqlalchemy_url(crowd.administration), poolclass=NullPool).connect() as connection:
        yield connection


def test_the_silent_are_looked_for_where_there_is_work(crowd: Fleet, connection: Connection) -> None:
    plan = plan_of(connection, SILENT, {"team_id": crowd.team_id(), "limit": 50})

    assert rows_touched(plan, "agents", "agent_runtime", "jobs") <= 100, plan


def test_those_in_error_are_not_looked_for_among_the_dead(crowd: Fleet, connection: Connection) -> None:
    plan = plan_of(connection, agents_in_error(crowd.team_id(), 51))

    assert rows_touched(plan, "agents", "agent_runtime") <= 100, plan


@pytest.mark.parametrize("status", [Presence.ERROR, Presence.ONLINE, Presence.UNKNOWN])
def test_agents_of_a_status_are_found_by_their_presence(
    crowd: Fleet, connection: Connection, status: Presence
) -> None:
    query = AgentQuery(status=status)

    plan = plan_of(connection, agents_asked_for(crowd.team_id(), query).limit(51))

    assert rows_touched(plan, "agents", "agent_runtime") <= 100, plan


@pytest.mark.parametrize("of", [BOUND_TO_AGENT, OF_CONNECTOR], ids=["agent", "connector"])
def test_jobs_of_an_agent_or_a_connector_are_counted_without_a_look_at_jobs(
    crowd: Fleet, connection: Connection, of: TextClause
) -> None:
    statuses = sorted(state.value for state in JOB_HELD)
    facts = {"team_id": crowd.team_id(), "id": crowd.agent_id("atlas"), "statuses": statuses}

    plan = plan_of(connection, of, facts)

    assert " on jobs" not in plan, plan


def test_administrators_are_not_looked_for_among_system_users(crowd: Fleet, connection: Connection) -> None:
    plan = plan_of(connection, administrators_and(crowd.team_id(), crowd.user_id("ole@example.com")))

    assert rows_touched(plan, "users") <= 20, plan
