"""A schema that moves on under a running server: it stays ready while it is served, and says so when it is not."""

import asyncio
from pathlib import Path

import httpx
import pytest

from agent_console.database.schema import REVISION
from agent_console.domain.errors import SchemaMismatch
from agent_console.domain.records import Nothing
from agent_console.repository.operations import ME
from agent_console.repository.postgres.repository import Backend, open_direct
from agent_console.repository.postgres.schema_watch import SchemaWatch
from tests.support.fleet import Fleet
from tests.support.later_program import LaterProgram, this_program_again
from tests.support.serving import serving

ADDS = "alter table agents add column nickname text;"
TAKES_AWAY = "alter table agents drop column nickname;"


async def migrated(later: LaterProgram, dsn: str) -> str:
    """What the later program says it would do; then it does it."""
    return await asyncio.to_thread(later.says, dsn, "db migrate --dry-run", "db migrate")


async def test_a_server_works_until_a_migration_that_no_longer_serves_it(fleet: Fleet, tmp_path: Path) -> None:
    expanding = this_program_again(tmp_path).with_migration(ADDS)
    backend = Backend(fleet.working)
    backend.database.schema = SchemaWatch(look_again_seconds=0)
    headers = {"Authorization": f"Bearer {fleet.token('ana@example.com')}"}
    async with (
        serving(fleet.working, backend=backend) as url,
        httpx.AsyncClient(base_url=url, headers=headers, timeout=60) as client,
    ):
        told = await migrated(expanding, fleet.administration)
        stays = [(await client.get(path)).status_code for path in ("/readyz", "/v1/agents")]
        async with open_direct(fleet.working) as newcomer:
            me = await newcomer.call(ME, Nothing())

        contracting = expanding.with_migration(TAKES_AWAY)
        warned = await migrated(contracting, fleet.administration)
        refused = [(await client.get(path)) for path in ("/readyz", "/v1/agents")]
        alive = (await client.get("/healthz")).status_code
        with pytest.raises(SchemaMismatch):
            await backend.connections.rows("select 1", {})

    assert f"Programs of schema {REVISION} would go on working." in told
    assert (stays, me.team) == ([200, 200], "example")
    assert f"Programs of schema {expanding.revision} would go on working." in warned
    assert f"Programs of schema {REVISION} would be refused: upgrade or stop them first." in warned
    assert [answer.status_code for answer in refused] == [503, 503]
    for answer in refused:
        assert answer.json()["code"] == "schema_mismatch"
        assert f"schema {contracting.revision}, newer than this program" in answer.json()["message"]
        assert "Upgrade agent-console" in answer.json()["hint"]
    assert alive == 200
