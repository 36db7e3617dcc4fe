"""The registry as a whole: what it keeps, and how it tells of it."""

import pytest

from agent_console.domain.agents import AgentAsked, AgentQuery
from agent_console.domain.collections import CollectionQuery, NewCollection
from agent_console.domain.connectors import ConnectorQuery, NewConnector
from agent_console.domain.hosted import LifecycleMove, NewHostedAgent
from agent_console.domain.jobs import JobQuery
from agent_console.domain.kinds import CredentialLocation, StorageKind
from agent_console.domain.records import Request
from agent_console.domain.sessions import NewSession, SessionAsked
from agent_console.domain.states import Lifecycle
from agent_console.domain.tokens import NewRegistrationToken
from agent_console.repository.http.repository import HttpRepository
from agent_console.repository.operations import AGENTS_GET, AGENTS_LIST, JOBS_LIST, OPERATIONS, AnyOperation
from agent_console.repository.operations.agents import AGENTS_DELETE, AGENTS_HOST, AGENTS_MOVE
from agent_console.repository.operations.credentials import REGISTRATION_TOKENS_MINT
from agent_console.repository.operations.sessions import SESSIONS_CLOSE, SESSIONS_OPEN
from agent_console.repository.operations.storage import COLLECTIONS_CREATE, CONNECTORS_CREATE
from agent_console.repository.port import Repository
from tests.repository.conftest import ADMIN
from tests.support.fleet import Fleet
from tests.support.serving import serving


def listing(noun: str) -> AnyOperation:
    return next(operation for operation in OPERATIONS if operation.name == f"{noun}.list")


@pytest.mark.rule("R000-7")
async def test_all_six_kinds_are_still_there_after_the_server_was_restarted(fleet: Fleet) -> None:
    token = fleet.token(ADMIN)
    asked: dict[str, Request] = {
        "agents": AgentQuery(),
        "jobs": JobQuery(),
        "connectors": ConnectorQuery(),
        "collections": CollectionQuery(),
        "registration_tokens": listing("registration_tokens").request(),
        "users": listing("users").request(),
    }
    async with serving(fleet.working) as url, HttpRepository(url, token) as before:
        await before.call(REGISTRATION_TOKENS_MINT, NewRegistrationToken())
        connector = NewConnector(
            name="bucket", type=StorageKind.S3, credential_location=CredentialLocation.PENDING
        )
        await before.call(CONNECTORS_CREATE, connector)
        await before.call(COLLECTIONS_CREATE, NewCollection(name="photos", type=StorageKind.S3))
        known = {noun: (await before.call(listing(noun), query)).items for noun, query in asked.items()}

    async with serving(fleet.working) as url, HttpRepository(url, token) as after:
        found = {noun: (await after.call(listing(noun), query)).items for noun, query in asked.items()}

    assert all(known.values())
    assert {noun: [item.id for item in items] for noun, items in found.items()} == {
        noun: [item.id for item in items] for noun, items in known.items()
    }


@pytest.mark.rule("R000-40", "R004-8")
def test_an_agent_has_one_team_and_its_run_time_state_a_table_of_its_own(fleet: Fleet) -> None:
    keys = fleet.execute(
        "select conname, confrelid::regclass::text from pg_constraint"
        " where conrelid = 'agents'::regclass and contype = 'f' and conname = 'agents_team_id_fkey'"
    )
    tables = {row[0] for row in fleet.execute("select tablename from pg_tables where schemaname = 'public'")}

    assert keys == [("agents_team_id_fkey", "teams")]
    assert {"agents", "agent_runtime", "sessions", "users", "jobs", "audit_log"} <= tables


@pytest.mark.rule("R004-79")
async def test_a_write_is_on_disk_before_it_is_acknowledged(repository: Repository, fleet: Fleet) -> None:
    await repository.call(JOBS_LIST, JobQuery())

    assert fleet.one("select setting from pg_settings where name = 'synchronous_commit'") == "on"
    assert (
        fleet.execute("select setconfig from pg_db_role_setting where setconfig::text like '%%synchronous%%'")
        == []
    )


@pytest.mark.rule("R004-10")
def test_agents_of_a_lifecycle_are_found_by_index(fleet: Fleet) -> None:
    index = fleet.one("select indexdef from pg_indexes where indexname = 'agent_runtime_lifecycle_idx'")

    assert "(team_id, lifecycle, agent_id)" in str(index)


@pytest.mark.rule("U004-17", "U004-19")
async def test_the_life_of_a_hosted_agent_is_told_in_the_words_people_know(
    repository: Repository, fleet: Fleet
) -> None:
    hosted = await repository.call(AGENTS_HOST, NewHostedAgent(name="nova"))
    agent_id = hosted.agent.id
    await repository.call(AGENTS_MOVE, LifecycleMove(agent_id=agent_id, to=Lifecycle.RUNNING))
    opened = await repository.call(SESSIONS_OPEN, NewSession(agent_id=agent_id))
    status = await repository.call(AGENTS_GET, AgentAsked(agent_id=agent_id))
    await repository.call(SESSIONS_CLOSE, SessionAsked(session_id=opened.id))
    await repository.call(AGENTS_MOVE, LifecycleMove(agent_id=agent_id, to=Lifecycle.STOPPING))
    await repository.call(AGENTS_MOVE, LifecycleMove(agent_id=agent_id, to=Lifecycle.STOPPED))
    await repository.call(AGENTS_DELETE, AgentAsked(agent_id=agent_id))

    told = [row[0] for row in fleet.execute("select action from audit_log order by seq")]
    assert told == [
        *("agent.created", "agent.started", "session.created", "session.closed"),
        *("agent.move", "agent.stopped", "agent.deleted"),
    ]
    assert (status.open_sessions, status.cpu_millicores, status.memory_mb) == (1, 500, 512)
    assert "uptime_seconds" in type(status).model_fields
    assert len((await repository.call(AGENTS_LIST, AgentQuery())).items) == 10
