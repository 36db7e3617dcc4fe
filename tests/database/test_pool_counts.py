"""The counts behind the badge: right whoever writes, however many at once, and written once for all of them."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial

import psycopg
import pytest

from tests.database import rows
from tests.database.team import Connection, Team
from tests.support.clusters import TemplateDatabase

AT = datetime(2026, 3, 1, 3, 0, tzinfo=UTC)
MANY = 400
REVOKE = "update agents set revoked_at = now(), revocation_reason = 'lost' where id = %s"
COME = "update agent_runtime set presence = 'online' where agent_id = %s"


@pytest.fixture(scope="module")
def settled(templates: TemplateDatabase) -> Iterator[Team]:
    with rows.settled_team(templates, "pool_counts") as team:
        yield team


@pytest.fixture
def team(settled: Team) -> Iterator[Team]:
    with settled.connection.transaction(force_rollback=True):
        yield settled


def add(team: Team, presence: str, **changes: object) -> object:
    agent = rows.add_agent(team, **changes)["id"]
    rows.add_agent_runtime(team, agent_id=agent, presence=presence, last_heartbeat_at=AT)
    return agent


def add_many(team: Team, presence: str) -> None:
    """In one statement for each table."""
    make_id = "overlay(gen_random_uuid()::text placing '7' from 15 for 1)::uuid"
    team.execute(
        f"""
        with people as (
            insert into users (team_id, id, kind, full_name)
            select %s, {make_id}, 'system', 'Agent' from generate_series(1, %s)
         returning id
        )
        insert into agents (team_id, id, name, owner_user_id, system_user_id, created_by_user_id, worker_id,
                            api_key_hash, api_key_prefix)
        select %s, {make_id}, id::text, %s, id, %s, id::text, encode(sha256(id::text::bytea), 'hex'), 'agt_key_'
          from people
        """,
        *(team.team_id, MANY, team.team_id, team.user_id, team.user_id),
    )
    team.execute(
        "insert into agent_runtime (team_id, agent_id, presence, last_heartbeat_at)"
        " select team_id, id, %s, %s from agents",
        *(presence, AT),
    )
    team.execute("analyze agents")


def counted(team: Team) -> dict[str, object]:
    (sums,) = team.execute(
        "select coalesce(sum(online), 0) as online, coalesce(sum(error), 0) as error,"
        " coalesce(sum(offline), 0) as offline, coalesce(sum(unknown), 0) as unknown from pool_counts"
        " where team_id = %s",
        team.team_id,
    )
    return {name: count for name, count in sums.items() if count}


def activity(team: Team, table: str, of: str) -> int:
    """How often something was done to a table in this transaction."""
    (found,) = team.execute(f"select {of} as times from pg_stat_xact_user_tables where relname = %s", table)
    return int(str(found["times"]))


def test_one_statement_moves_agents_in_every_direction(team: Team) -> None:
    for presence in ("online", "online", "error", "offline", "unknown"):
        add(team, presence)
    before = counted(team)

    team.execute(
        "update agent_runtime set presence = case presence when 'online' then 'offline' when 'error' then 'online'"
        " when 'offline' then 'error' else presence end"
    )

    assert before == {"online": 2, "error": 1, "offline": 1, "unknown": 1}
    assert counted(team) == {"online": 1, "error": 1, "offline": 2, "unknown": 1}


def test_two_that_change_places_both_count(team: Team) -> None:
    """Their sum stays, but one of them is not counted at all."""
    add(team, "online", revoked_at=AT, revocation_reason="lost")
    add(team, "offline")

    team.execute(
        "update agent_runtime set presence = case presence when 'online' then 'offline' else 'online' end"
    )

    assert counted(team) == {"online": 1}


@pytest.mark.parametrize("gone", [{"revoked_at": AT, "revocation_reason": "lost"}, {"deleted_at": AT}])
def test_revoked_and_deleted_agents_are_left_out(team: Team, gone: dict[str, object]) -> None:
    add(team, "online", **gone)
    agent = add(team, "offline", **gone)
    here = add(team, "offline")

    for moved in (agent, here):
        team.execute(COME, moved)

    assert counted(team) == {"online": 1}


def test_agents_of_two_teams_in_one_statement_are_counted_for_each(team: Team) -> None:
    other = rows.make_team(team.connection, "south")
    for each in (team, team, other):
        add(each, "offline")

    team.execute("update agent_runtime set presence = 'online'")

    assert (counted(team), counted(other)) == ({"online": 2}, {"online": 1})


def test_many_agents_at_once_are_counted_in_two_writes(team: Team) -> None:
    """One write for each agent would make a statement of all of them grow with their square."""
    add_many(team, "offline")
    newcomers = counted(team)
    before = activity(team, "pool_counts", "n_tup_ins + n_tup_upd")

    team.execute("update agent_runtime set presence = 'online'")

    assert (newcomers, counted(team)) == ({"offline": MANY}, {"online": MANY})
    assert activity(team, "pool_counts", "n_tup_ins + n_tup_upd") - before == 2


def test_a_heartbeat_of_who_stays_what_it_is_writes_no_count(team: Team) -> None:
    agent = add(team, "online")
    before = activity(team, "pool_counts", "n_tup_ins + n_tup_upd")

    team.execute("update agent_runtime set presence = 'online', last_heartbeat_at = now()")

    assert activity(team, "pool_counts", "n_tup_ins + n_tup_upd") == before
    assert team.stored("agent_runtime", {"agent_id": agent})["last_heartbeat_at"] != AT


def test_one_agent_is_looked_up_after_a_statement_of_all(team: Team) -> None:
    """The plan of the first statement is kept: one made for all agents must not read all of them for each."""
    add_many(team, "offline")
    team.execute("update agent_runtime set presence = 'online'")
    before = activity(team, "agents", "seq_tup_read")

    one = "select agent_id from agent_runtime limit 1"
    team.execute(f"update agent_runtime set presence = 'offline' where agent_id = ({one})")

    assert counted(team) == {"online": MANY - 1, "offline": 1}
    assert activity(team, "agents", "seq_tup_read") == before


@pytest.mark.parametrize("revoked_first", [True, False])
def test_an_agent_that_comes_while_it_is_revoked_is_counted_never_or_not_any_more(
    database: str, revoked_first: bool
) -> None:
    with psycopg.connect(database, autocommit=True) as setting, ThreadPoolExecutor(1) as other_process:
        team = rows.make_team(setting)
        agent = add(team, "offline")
        statements = (REVOKE, COME) if revoked_first else (COME, REVOKE)

        with psycopg.connect(database) as first:
            first.execute(statements[0], (agent,))
            second = other_process.submit(partial(_commit, database, statements[1], agent))
            _wait_for_lock(setting, second)
        second.result(timeout=60)

        assert team.execute(
            "select revoked_at is not null as revoked, presence from agents join agent_runtime on agent_id = id"
        ) == [{"revoked": True, "presence": "online"}]
        assert counted(team) == {}


def _commit(database: str, statement: str, agent: object) -> None:
    with psycopg.connect(database) as connection:
        connection.execute(statement.encode(), (agent,))


def _wait_for_lock(connection: Connection, waiting: Future[None]) -> None:
    """Until somebody waits for another's row."""
    question = "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
    while not connection.execute(question).fetchall():
        assert not waiting.done(), "nobody had to wait"
