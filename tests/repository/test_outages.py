"""A database that is wrong, gone, frozen, not migrated or too new: one clear sentence, soon."""

import asyncio
import os
import signal
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from agent_console.domain.errors import (
    CannotConnect,
    ConfigError,
    DatabaseUnavailable,
    SchemaMismatch,
    TimedOut,
)
from agent_console.domain.records import Nothing
from agent_console.repository.http.repository import HttpRepository
from agent_console.repository.operations import ME, POOL_STATUS
from agent_console.repository.postgres.database import Database
from agent_console.repository.postgres.identify import by_name
from agent_console.repository.postgres.repository import Backend, PostgresRepository, open_direct
from tests.support.clusters import Cluster, TemplateDatabase
from tests.support.fleet import Fleet
from tests.support.serving import serving


@pytest.mark.parametrize(
    ("dsn", "words"),
    [
        ("postgresql://127.0.0.1:1/nothing", "Connection refused"),
        ("host=/nowhere dbname=nothing", "No such file or directory"),
        ("postgresql://no-such-host.invalid/nothing", "no-such-host.invalid"),
    ],
)
async def test_a_database_that_does_not_answer(dsn: str, words: str) -> None:
    async with open_direct(dsn) as repository:
        with pytest.raises(DatabaseUnavailable) as refused:
            await repository.call(ME, Nothing())

    assert words in refused.value.message
    assert refused.value.hint
    assert refused.value.exit_code == 3


async def test_a_database_that_does_not_exist(postgres: Cluster) -> None:
    async with open_direct(postgres.dsn("never_made")) as repository:
        with pytest.raises(DatabaseUnavailable) as refused:
            await repository.call(ME, Nothing())

    assert "never_made" in refused.value.message
    assert "createdb" in refused.value.hint


async def test_a_user_that_does_not_exist(postgres: Cluster) -> None:
    async with open_direct(make_conninfo(postgres.dsn(), user="never_made")) as repository:
        with pytest.raises(DatabaseUnavailable) as refused:
            await repository.call(ME, Nothing())

    assert 'role "never_made" does not exist' in refused.value.message
    assert refused.value.hint == "Check user and password of your profile (agent-console config show)."


def test_a_dsn_that_cannot_be_read() -> None:
    with pytest.raises(ConfigError) as refused:
        open_direct("this is = not a dsn")

    assert "DSN" in refused.value.message


async def test_a_password_never_appears_in_an_error() -> None:
    async with open_direct("postgresql://me:hunter2@127.0.0.1:1/x") as repository:
        with pytest.raises(DatabaseUnavailable) as refused:
            await repository.call(ME, Nothing())

    assert "hunter2" not in str(refused.value)
    assert "hunter2" not in str(refused.value.body())


async def test_a_database_that_is_not_migrated(templates: TemplateDatabase) -> None:
    templates.clone("template0", "never_migrated")
    try:
        async with open_direct(templates.cluster.dsn("never_migrated")) as repository:
            with pytest.raises(SchemaMismatch) as refused:
                await repository.call(ME, Nothing())
    finally:
        templates.drop("never_migrated")

    assert refused.value.hint == "Run: agent-console db migrate"


@pytest.mark.parametrize(("revision", "hint"), [("0001", "db migrate"), ("9999", "Upgrade agent-console")])
async def test_a_database_of_another_age(fleet: Fleet, revision: str, hint: str) -> None:
    fleet.execute("update alembic_version set version_num = %s", revision)
    fleet.execute("delete from schema_fits")

    async with open_direct(fleet.working) as repository:
        with pytest.raises(SchemaMismatch) as refused:
            await repository.call(ME, Nothing())

    assert hint in refused.value.hint


async def test_connections_that_were_cut_are_replaced(fleet: Fleet) -> None:
    async with open_direct(fleet.working) as repository:
        await repository.call(ME, Nothing())

        fleet.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where datname = current_database() and pid <> pg_backend_pid()"
        )

        assert (await repository.call(ME, Nothing())).team == "example"


async def test_a_frozen_database_is_not_waited_for(fleet: Fleet) -> None:
    """The server accepts and then says nothing: the answer comes in our time, not in the server's."""
    database = Database(fleet.working, answer_seconds=0.5)
    backend = Backend(fleet.working)
    await backend.database.close()
    backend.database = database
    repository = PostgresRepository(backend, by_name("example", None))
    await backend.ready()
    with psycopg.connect(fleet.administration, autocommit=True) as watching:
        pids = [
            row[0]
            for row in watching.execute(
                "select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
            )
        ]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        before = asyncio.all_tasks()
        with pytest.raises(TimedOut):
            await repository.call(POOL_STATUS, Nothing())
        left_to_itself = asyncio.all_tasks() - before
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)

    assert left_to_itself, "the answer waited for a query that the server never ends"
    await asyncio.sleep(0)
    await backend.close()


async def test_a_server_that_is_not_there() -> None:
    async with HttpRepository("http://127.0.0.1:1", "opt_key_x") as repository:
        with pytest.raises(CannotConnect) as refused:
            await repository.call(ME, Nothing())

    assert "127.0.0.1:1" in refused.value.message
    assert "agent-console serve" in refused.value.hint


async def test_something_else_that_answers(tmp_path: Path) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as other:
        port = other.sockets[0].getsockname()[1]
        async with HttpRepository(f"http://127.0.0.1:{port}", "opt_key_x") as repository:
            with pytest.raises(CannotConnect) as refused:
                await repository.call(ME, Nothing())

    assert "not an agent-console server" in refused.value.message


async def test_the_servers_lost_database_is_told_as_such(fleet: Fleet) -> None:
    token = fleet.token("ana@example.com")
    async with serving("host=/nowhere dbname=nothing") as url, HttpRepository(url, token) as repository:
        with pytest.raises(DatabaseUnavailable):
            await repository.call(ME, Nothing())
