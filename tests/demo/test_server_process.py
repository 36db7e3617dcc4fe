"""The process of the demo's server: the database comes up beneath it, it says how far it is, and ends with us."""

import asyncio
import stat
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from agent_console.cli.demo.server_process import ServerProcess
from agent_console.database.embedded_folder import Layout
from agent_console.database.embedded_locks import FileLock
from agent_console.database.schema import REVISION
from agent_console.database.up_to_date import bring_up_to_date, is_current
from agent_console.domain.errors import CannotConnect, DatabaseUnavailable
from agent_console.domain.records import Nothing
from agent_console.repository.http.repository import HttpRepository
from agent_console.repository.operations.fleet import ME
from tests.support.clusters import reachable_folder

ENDS_WITHIN = 30.0


@pytest.fixture
def folder() -> Iterator[Path]:
    with reachable_folder(in_memory=True) as place:
        yield place / "demo"


def nobody_is_left(folder: Path) -> bool:
    with FileLock(Layout(folder).server_lock) as lock:
        return lock.take(ENDS_WITHIN)


async def test_a_first_start_makes_everything_and_the_end_leaves_nobody(folder: Path) -> None:
    said: list[str] = []
    server = ServerProcess(folder)
    await server.begun()
    place = await server.serving(said.append)

    async with HttpRepository(place.url, place.token) as ana:
        me = await ana.call(ME, Nothing())
    current = is_current(Layout(folder).dsn("agent_console"))
    await server.remember()
    await server.leave()

    assert (me.name, current) == ("Ana Costa", True)
    assert said[0].startswith("Making a database")
    assert said[-2:] == ["Bringing the database up to date …", "Starting the server …"]
    assert stat.S_IMODE((folder / "demo.token").stat().st_mode) == 0o600
    assert nobody_is_left(folder)


async def test_a_server_that_says_much_does_not_stand_still(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More than a pipe holds, before it has said a word."""
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.stderr.write('x' * 1_000_000)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    server = ServerProcess(folder)
    try:
        async with asyncio.timeout(ENDS_WITHIN):
            await server.begun()
    finally:
        await server.leave()


async def test_what_ends_during_the_start_tells_its_last_words(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text("import os\nos.write(2, b'no more room')\nos._exit(1)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    server = ServerProcess(folder)

    with pytest.raises(CannotConnect) as refused:
        await server.begun()
    await server.leave()

    assert refused.value.hint == "no more room"


async def test_who_leaves_during_the_start_leaves_nobody_behind(folder: Path) -> None:
    server = ServerProcess(folder)
    await server.begun()

    await server.leave()
    async with asyncio.timeout(ENDS_WITHIN):
        await server.remember()

    assert nobody_is_left(folder)


@pytest.fixture
def foreign(folder: Path) -> Path:
    """A data folder in which somebody keeps something else."""
    folder.mkdir(mode=0o711)
    (folder / "data").mkdir()
    return folder


async def test_what_is_wrong_with_the_database_is_told_in_its_own_words(foreign: Path) -> None:
    server = ServerProcess(foreign)

    with pytest.raises(DatabaseUnavailable) as refused:
        await server.begun()
    await server.leave()

    assert "something else than a PostgreSQL database" in refused.value.message
    assert "choose another data folder" in refused.value.hint


def test_a_database_is_brought_up_to_date_once(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        before = is_current(database)
        connection.execute("update alembic_version set version_num = '0001'")
        behind = is_current(database)
        connection.execute("update alembic_version set version_num = %s", [REVISION])
        bring_up_to_date(database)
        connection.execute("alter table alembic_version rename to elsewhere")

        assert (before, behind, is_current(database)) == (True, False, False)
