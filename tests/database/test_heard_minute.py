"""The minute in which an agent was last heard: the table makes it, and it seldom moves."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from agent_console.domain.ids import AgentId
from tests.database import rows
from tests.database.team import Row, Team
from tests.support.clusters import TemplateDatabase

BEGINS = datetime(2026, 3, 1, 3, 0, tzinfo=UTC)
MINUTE = timedelta(seconds=60)


@pytest.fixture(scope="module")
def settled(templates: TemplateDatabase) -> Iterator[Team]:
    with rows.settled_team(templates, "heard_minute") as team:
        yield team


@pytest.fixture
def team(settled: Team) -> Iterator[Team]:
    with settled.connection.transaction(force_rollback=True):
        yield settled


def heard(team: Team, last_byte: int, at: datetime | None) -> object:
    """The minute of an agent whose id ends with this byte."""
    agent = AgentId(int=AgentId.new().int & ~0xFF | last_byte)
    rows.add_agent(team, id=agent)
    row = rows.add_agent_runtime(team, agent_id=agent, last_heartbeat_at=at)
    return team.stored("agent_runtime", row)["heard_minute"]


@pytest.mark.parametrize("second", [0, 0.001, 29, 30, 59, 59.999])
@pytest.mark.parametrize("last_byte", [0, 7, 59, 60, 255])
def test_a_beat_lies_within_its_minute(team: Team, last_byte: int, second: float) -> None:
    at = BEGINS + timedelta(seconds=second)

    minute = heard(team, last_byte, at)

    assert isinstance(minute, datetime)
    assert minute <= at < minute + MINUTE
    assert minute.second == last_byte % 60, "counted from a second of the agent's own"


def test_who_was_never_heard_has_no_minute(team: Team) -> None:
    assert heard(team, 0, None) is None


def test_only_a_beat_after_the_minute_leaves_the_page(team: Team) -> None:
    agent = AgentId(int=AgentId.new().int & ~0xFF)
    rows.add_agent(team, id=agent)
    rows.add_agent_runtime(team, agent_id=agent, presence="online", last_heartbeat_at=BEGINS)

    stayed = [stays_in_page(team, agent, BEGINS + timedelta(seconds=second)) for second in (30, 60, 90, 120)]

    assert stayed == [True, False, True, False]


def stays_in_page(team: Team, agent: UUID, at: datetime) -> bool:
    """Whether a beat at this time is written without touching any index."""
    (before,) = _written(team)
    team.execute("update agent_runtime set last_heartbeat_at = %s where agent_id = %s", at, agent)
    (after,) = _written(team)
    assert int(str(after["beats"])) == int(str(before["beats"])) + 1
    return after["in_page"] != before["in_page"]


def _written(team: Team) -> list[Row]:
    return team.execute(
        "select n_tup_upd as beats, n_tup_hot_upd as in_page"
        " from pg_stat_xact_user_tables where relname = 'agent_runtime'"
    )
