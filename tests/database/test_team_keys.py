"""Every key leads with the team and every reference carries it, so no row can belong to two teams."""

from collections.abc import Iterator
from functools import partial
from uuid import UUID, uuid4

import pytest
from pytest import mark, param

from agent_console.database.tables import metadata
from agent_console.database.tables.columns import IdType
from tests.database import rows
from tests.database.rows import ADD, adding, make_team, refused_by
from tests.database.team import Team
from tests.support.clusters import TemplateDatabase

# References that outlive what they name (C-37, the history of routes), or that stand on a row written too often
# to lock a second one for it. The team's own row leads no other.
PLAIN_IDS = {
    "a2a_route_versions.from_agent_id",
    "a2a_route_versions.route_id",
    "a2a_route_versions.to_agent_id",
    "approvals.route_id",
    "approvals.trace_id",
    "audit_log.actor_agent_id",
    "audit_log.actor_user_id",
    "audit_log.run_id",
    "audit_log.thread_id",
    "audit_seals.audit_id",
    "job_events.created_by_user_id",
    "queue_counts.lane_id",
    "queue_moves.lane_id",
    "runs.trace_id",
    "teams.paused_by_user_id",
}

# Read by duties, which look at all teams at once: the next job whose time has come, the next moves to be counted,
# how the duties themselves go. And the programs that the schema serves.
OF_ALL_TEAMS = {"jobs_look_idx", "queue_moves_pkey", "duty_rounds_pkey", "schema_fits_pkey"}
# Words are indexed together with one that names the team and the thread they were said in, and asked for with it:
# such an index has no first column that could be the team.
BY_WORDS = {"messages_search_idx"}

KEYS = """
    select c.conrelid::regclass::text as relation, c.conname::text as name, a.attname::text as first
      from pg_constraint as c
      join pg_attribute as a on a.attrelid = c.conrelid and a.attnum = c.conkey[1]
     where c.connamespace = 'public'::regnamespace and c.contype in ('p', 'u', 'f')
     union all
    select i.indrelid::regclass::text, i.indexrelid::regclass::text, a.attname::text
      from pg_index as i
      join pg_class as r on r.oid = i.indrelid and r.relnamespace = 'public'::regnamespace
      left join pg_attribute as a on a.attrelid = i.indrelid and a.attnum = i.indkey[0] and i.indkey[0] > 0
"""


@pytest.fixture(scope="module")
def settled(templates: TemplateDatabase) -> Iterator[tuple[Team, Team]]:
    with rows.settled_team(templates, "teams") as team:
        yield team, make_team(team.connection, "far")


@pytest.fixture
def two_teams(settled: tuple[Team, Team]) -> Iterator[tuple[Team, Team]]:
    with settled[0].connection.transaction(force_rollback=True):
        yield settled


@pytest.fixture
def team(two_teams: tuple[Team, Team]) -> Team:
    return two_teams[0]


@mark.rule("R004-75", "R004-6", "R002-1")
def test_every_key_unique_rule_reference_and_index_starts_with_the_team(team: Team) -> None:
    found = team.execute(KEYS)

    apart = [row for row in found if row["relation"] not in ("teams", "alembic_version")]
    assert len(apart) > 100
    assert {row["name"] for row in apart if row["first"] != "team_id"} == OF_ALL_TEAMS | BY_WORDS


def test_a_reference_to_a_row_names_its_team_on_both_sides(team: Team) -> None:
    keys = team.execute(
        """
        select c.conname, a.attname from pg_constraint as c
          join pg_attribute as a on a.attrelid = c.confrelid and a.attnum = c.confkey[1]
         where c.contype = 'f' and c.confrelid <> 'teams'::regclass
        """
    )

    assert keys
    assert [row["conname"] for row in keys if row["attname"] != "team_id"] == []


def test_every_id_that_is_no_reference_is_a_known_exception(team: Team) -> None:
    free = team.execute(
        """
        select r.relname || '.' || a.attname as place
          from pg_class as r
          join pg_attribute as a on a.attrelid = r.oid and a.attnum > 0 and a.atttypid = 'uuid'::regtype
         where r.relnamespace = 'public'::regnamespace and r.relkind in ('r', 'p') and not r.relispartition
           and a.attname not in ('id', 'team_id')
           and not exists (select from pg_constraint as c
                            where c.contype = 'f' and c.conrelid = r.oid and a.attnum = any(c.conkey))
        """
    )

    assert {row["place"] for row in free} == PLAIN_IDS


ACROSS = (
    param("agents", "owner_user_id", "users", "agents_owner_user_id_fkey"),
    param("agents", "created_by_user_id", "users", "agents_created_by_user_id_fkey"),
    param("sessions", "agent_id", "agents", "sessions_agent_id_fkey"),
    param("collections", "connector_id", "connectors", "collections_connector_id_fkey"),
    param("jobs", "collection_id", "collections", "jobs_collection_id_fkey", marks=mark.rule("R000-132")),
    param("jobs", "bound_agent_id", "agents", "jobs_bound_agent_id_fkey"),
    param("jobs", "lane_id", "lanes", "jobs_lane_id_fkey"),
    param("job_events", "job_id", "jobs", "job_events_job_id_fkey"),
    param("thread_participants", "user_id", "users", "thread_participants_user_id_fkey"),
    param("messages", "thread_id", "threads", "messages_thread_id_fkey"),
    param("messages", "run_id", "runs", "messages_run_id_fkey"),
    param("runs", "target_agent_id", "agents", "runs_target_agent_id_fkey"),
    param("a2a_routes", "to_agent_id", "agents", "a2a_routes_to_agent_id_fkey"),
    param("approvals", "thread_id", "threads", "approvals_thread_id_fkey"),
    param("approval_looks", "approval_id", "approvals", "approval_looks_approval_id_fkey"),
)


@mark.parametrize(("table", "column", "target", "constraint"), ACROSS)
def test_a_row_can_not_refer_to_another_teams_row(
    two_teams: tuple[Team, Team], table: str, column: str, target: str, constraint: str
) -> None:
    near, far = two_teams
    theirs = ADD[target](far)["id"]

    refusal = refused_by(near, adding(near, table, **{column: theirs}))

    assert refusal == constraint


@mark.rule("R002-1")
def test_two_teams_use_the_same_names_and_ids(two_teams: tuple[Team, Team]) -> None:
    near, far = two_teams
    first = rows.add_agent(near, name="atlas", worker_id="atlas")

    second = rows.add_agent(far, name="atlas", worker_id="atlas", id=first["id"])

    assert (first["id"], first["name"]) == (second["id"], second["name"])


WITH_ID = tuple(
    sorted(
        name
        for name, table in metadata.tables.items()
        if "id" in table.c and isinstance(table.c["id"].type, IdType)
    )
)


@mark.rule("R000-9", "R000-51", "R001-1", "R001-17", "R002-5", "R002-14", "R002-22", "R002-33", "R002-47")
@mark.rule("R002-67", "R002-80", "R003-1", "R004-32")
@mark.parametrize("table", WITH_ID)
def test_an_id_is_a_uuid_of_version_7(team: Team, table: str) -> None:
    others: tuple[UUID, ...] = (uuid4(), UUID(int=0), UUID(int=(1 << 128) - 1))

    refusals = {refused_by(team, adding(team, table, id=other)) for other in others}

    assert refusals == {f"{table}_id_v7"}


@mark.rule("R000-10", "R000-52")
@mark.parametrize("table", sorted(set(ADD) - rows.OF_NO_TEAM))
def test_no_row_is_without_a_team(team: Team, table: str) -> None:
    assert refused_by(team, partial(ADD[table], team, team_id=None)) == "team_id"


def test_no_extension_is_needed(team: Team) -> None:
    found = team.execute("select extname from pg_extension")

    assert [row["extname"] for row in found] == ["plpgsql"]
