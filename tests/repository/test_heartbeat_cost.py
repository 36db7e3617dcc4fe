"""What a heartbeat costs: one statement, which in a large fleet finds a few rows by index."""

from collections.abc import AsyncIterator, Iterator
from typing import Any
from uuid import UUID

import httpx
import pytest
from sqlalchemy import Engine, NullPool, create_engine, event

from agent_console.database.address import sqlalchemy_url
from agent_console.domain.ids import JobId
from agent_console.domain.presence import Heartbeat
from agent_console.domain.secrets import Secret
from agent_console.repository.operations.presence import HEARTBEAT_SEND
from agent_console.repository.postgres.identify import by_token
from agent_console.repository.postgres.repository import Backend, PostgresRepository
from agent_console.server.app import build_app
from tests.support.fleet import Fleet

AGENTS = 3_000
JOBS = 3000
TABLES = ("agents", "agent_runtime", "jobs", "sessions")

# Copies of one agent with all it has; the copies differ in what has to be unique.
COPY_ID = "(lpad(to_hex(1900000000000 + n), 12, '0') || '7000a000' || lpad(to_hex(n), 12, '0'))::uuid"
COPY_USERS = f"""
    insert into users (team_id, id, kind, full_name)
    select a.team_id, {COPY_ID}, 'system', 'Agent: copy ' || n
      from agents a, generate_series(1, {AGENTS}) as n
     where a.name = 'beacon'
"""
COPY_AGENTS = f"""
    insert into agents ({{columns}})
    select {{values}} from agents a, generate_series(1, {AGENTS}) as n where a.name = 'beacon'
"""
COPY_RUNTIME = f"""
    insert into agent_runtime ({{columns}})
    select {{values}}
      from agents a
      join agent_runtime r on r.team_id = a.team_id and r.agent_id = a.id, generate_series(1, {AGENTS}) as n
     where a.name = 'beacon'
"""
UNIQUE_OF_AGENTS = {
    "id": COPY_ID,
    "name": "'copy ' || n",
    "worker_id": "'copy-' || n",
    "system_user_id": COPY_ID,
    "api_key_hash": "encode(sha256(n::text::bytea), 'hex')",
}


def columns_of(fleet: Fleet, table: str) -> list[str]:
    """The columns that can be written."""
    found = fleet.execute(
        "select attname from pg_attribute where attrelid = %s::regclass"
        " and attnum > 0 and not attisdropped and attgenerated = '' and attidentity = ''",
        table,
    )
    return [str(name) for (name,) in found]


@pytest.fixture
def crowd(fleet: Fleet) -> Fleet:
    """The fleet among thousands of agents, most of them alive, and thousands of jobs."""
    fleet.add_jobs(JOBS)
    fleet.execute(COPY_USERS)
    for copy, table, short, unique in (
        (COPY_AGENTS, "agents", "a", UNIQUE_OF_AGENTS),
        (COPY_RUNTIME, "agent_runtime", "r", {"agent_id": COPY_ID}),
    ):
        columns = columns_of(fleet, table)
        values = (unique.get(name, f"{short}.{name}") for name in columns)
        fleet.execute(copy.format(columns=", ".join(columns), values=", ".join(values)))
    fleet.execute("analyze")
    return fleet


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for part in plan.get("Plans", ()):
        yield from nodes(part)


def rows_touched(node: dict[str, Any]) -> float:
    """What a scan gave and what it threw away."""
    thrown = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
    touched: float = (node["Actual Rows"] + thrown) * node["Actual Loops"]
    return touched


def scans_of(fleet: Fleet, statement: str, parameters: dict[str, Any]) -> list[dict[str, Any]]:
    """How the tables of the registry and the queue were read, the statement being made once more."""
    with create_engine(sqlalchemy_url(fleet.administration), poolclass=NullPool).connect() as connection:
        explained = f"explain (analyze, timing off, format json) {statement}"
        [found] = connection.exec_driver_sql(explained, parameters).scalar_one()
    read = (node for node in nodes(found["Plan"]) if "Scan" in node["Node Type"])
    return [node for node in read if node.get("Relation Name") in TABLES]


class Statements:
    """What is sent to any database of this process while it listens."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, dict[str, Any]]] = []

    def hear(
        self, _connection: object, _cursor: object, statement: str, parameters: dict[str, Any], *_: object
    ) -> None:
        self.sent.append((statement, parameters))

    def __enter__(self) -> "Statements":
        event.listen(Engine, "before_cursor_execute", self.hear)
        return self

    def __exit__(self, *_: object) -> None:
        event.remove(Engine, "before_cursor_execute", self.hear)


@pytest.fixture
async def backend(fleet: Fleet) -> AsyncIterator[Backend]:
    backend = Backend(fleet.working)
    yield backend
    await backend.close()


def key_of_atlas(fleet: Fleet) -> Secret:
    key = Secret.mint(fleet.team_id(), fleet.agent_id("atlas"))
    fleet.execute("update agents set api_key_hash = %s where name = 'atlas'", key.hash)
    return key


@pytest.mark.rule("U000-15")
async def test_a_heartbeat_is_one_statement(fleet: Fleet, backend: Backend) -> None:
    atlas = PostgresRepository(backend, by_token(key_of_atlas(fleet)))
    await atlas.call(HEARTBEAT_SEND, Heartbeat())

    with Statements() as statements:
        await atlas.call(HEARTBEAT_SEND, Heartbeat(metrics={"cpu": 0.3}))

    assert len(statements.sent) == 1, statements.sent
    assert "agent_runtime" in statements.sent[0][0]


@pytest.mark.rule("U000-15")
async def test_the_server_adds_no_statement_to_it(fleet: Fleet, backend: Backend) -> None:
    transport = httpx.ASGITransport(build_app(backend))
    headers = {"Authorization": f"Bearer {key_of_atlas(fleet).word}"}
    async with httpx.AsyncClient(transport=transport, base_url="http://server", headers=headers) as client:
        await client.post("/v1/heartbeat", json={})

        with Statements() as statements:
            answer = await client.post("/v1/heartbeat", json={"metrics": {"cpu": 0.3}})

    assert answer.status_code == 200
    assert len(statements.sent) == 1, statements.sent


@pytest.mark.rule("U000-15")
async def test_in_a_large_fleet_it_touches_a_few_rows_by_index(crowd: Fleet, backend: Backend) -> None:
    job = crowd.one("select id from jobs where claimed_by = 'atlas' order by id limit 1")
    held = crowd.one("select count(*) from jobs where claimed_by = 'atlas' and status in ('assigned', 'running')")
    assert isinstance(job, UUID)
    assert isinstance(held, int)
    atlas = PostgresRepository(backend, by_token(key_of_atlas(crowd)))
    await atlas.call(HEARTBEAT_SEND, Heartbeat())

    with Statements() as statements:
        await atlas.call(HEARTBEAT_SEND, Heartbeat(metrics={"cpu": 0.2}, current_jobs=(JobId.of(job),)))
    scans = scans_of(crowd, *statements.sent[0])

    walked = [
        scan["Relation Name"] for scan in scans if scan["Node Type"] == "Seq Scan" and rows_touched(scan) > 10
    ]
    assert {scan["Relation Name"] for scan in scans} >= {"agents", "agent_runtime", "jobs"}
    assert walked == []
    assert sum(map(rows_touched, scans)) <= 10 + 2 * held
