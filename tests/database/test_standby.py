"""A primary is lost and its standby is promoted, under a running server, agents and a console.

All of them name both in one DSN (`host=a,b target_session_attrs=read-write`), and the primary waits for its
standby (`synchronous_standby_names`, `synchronous_commit=remote_apply`): what was acknowledged is there
afterwards, and nobody has to be started again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, field
from functools import partial

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from agent_console.agent import JobContext
from agent_console.database.migrate import migrate
from agent_console.database.roles import APP, with_role
from agent_console.domain.audit_proof import Verification, Verified
from agent_console.domain.errors import ConsoleError, TimedOut
from agent_console.domain.ids import JobId
from agent_console.domain.jobs import NewJob
from agent_console.repository.http.repository import HttpRepository
from agent_console.repository.operations import JOBS_CREATE
from agent_console.repository.operations.audit_trail import AUDIT_VERIFY
from agent_console.repository.port import Repository, Topic
from agent_console.repository.postgres.audit.sealing import SEAL_ACTS
from agent_console.repository.postgres.database import Database
from agent_console.repository.postgres.duties.rounds import do_round
from agent_console.repository.postgres.identify import by_name
from agent_console.repository.postgres.repository import Backend, PostgresRepository, open_direct
from tests.agent.stage import Stage, until
from tests.faults.postgres import Postgres, own_postgres, standby_of
from tests.queue.crew import EMPTY
from tests.support import example_fleet
from tests.support.clusters import reachable_folder
from tests.support.fleet import AT, Fleet

BEFORE, AFTER = 8, 10
AGENTS = ("atlas", "beacon")
UNFINISHED = "select count(*) from jobs where finished_at is null and type = 'work'"


@dataclass(frozen=True)
class Pair:
    primary: Postgres
    standby: Postgres

    @property
    def dsn(self) -> str:
        hosts = f"{self.primary.layout.run},{self.standby.layout.run}"
        return make_conninfo(self.primary.dsn, host=hosts, port="5432,5432", target_session_attrs="read-write")


@pytest.fixture
def pair() -> Iterator[Pair]:
    """With the fixed fleet and an empty queue; from then on the primary waits for its standby."""
    with reachable_folder() as folder, own_postgres(folder / "one") as primary:
        migrate(primary.dsn)
        example_fleet.fill(primary.dsn, AT)
        Fleet(primary.dsn).execute(EMPTY)
        with standby_of(primary, folder / "two") as standby:
            for setting in ("synchronous_standby_names = '*'", "synchronous_commit = 'remote_apply'"):
                Fleet(primary.dsn).execute(f"alter system set {setting}")
            Fleet(primary.dsn).execute("select pg_reload_conf()")
            yield Pair(primary, standby)


async def synchronous(primary: Postgres) -> None:
    with psycopg.connect(primary.dsn, autocommit=True) as watching:

        def follows() -> bool:
            found = watching.execute("select sync_state from pg_stat_replication").fetchall()
            return found == [("sync",)]

        await until(follows)


@dataclass
class Story:
    acknowledged: list[JobId] = field(default_factory=list)
    refetches: int = 0


async def insisted(asked: Callable[[], Awaitable[JobId]]) -> JobId:
    """As a careful client does: the same key again is the same job."""
    while True:
        try:
            return await asked()
        except ConsoleError as error:
            assert error.status >= 500, error
            await asyncio.sleep(0.05)


async def feed(operator: Repository, story: Story) -> None:
    async def ask(number: int) -> JobId:
        new = NewJob(type="work", payload={"number": number}, idempotency_key=f"job {number}")
        return (await operator.call(JOBS_CREATE, new)).id

    for number in range(BEFORE + AFTER):
        story.acknowledged.append(await insisted(partial(ask, number)))


async def listen(dsn: str, story: Story) -> None:
    """A console in direct mode: after a lost connection it is told to fetch everything again."""
    async with open_direct(dsn, team="example") as console, aclosing(console.changes()) as changes:
        async for change in changes:
            story.refetches += change.topic is Topic.EVERYTHING


async def work(job: JobContext) -> None:
    await asyncio.sleep(0.01)


async def refuse_to_acknowledge(pair: Pair) -> TimedOut:
    """A commit that waits for a frozen standby, and is then given up, is made here and unknown there."""
    backend = Backend(with_role(pair.dsn, APP))
    await backend.database.close()
    backend.database = Database(with_role(pair.dsn, APP), answer_seconds=0.5)
    ana = PostgresRepository(backend, by_name("example", "ana@example.com"))
    pair.standby.freeze()
    with pytest.raises(TimedOut) as refused:
        await ana.call(JOBS_CREATE, NewJob(type="unconfirmed", payload={}))
    pair.standby.thaw()
    await backend.close()
    return refused.value


async def proved(dsn: str) -> tuple[str | None, Verified]:
    backend = Backend(dsn)
    try:
        sealed = await do_round(SEAL_ACTS, backend)
        ana = PostgresRepository(backend, by_name("example", "ana@example.com"))
        return sealed.error, await ana.call(AUDIT_VERIFY, Verification())
    finally:
        await backend.close()


async def test_what_was_acknowledged_survives_the_primary_and_everybody_comes_back(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_CONSOLE_SERVER_KEY", "A" * 43)
    story = Story()
    await synchronous(pair.primary)
    unconfirmed = await refuse_to_acknowledge(pair)
    async with AsyncExitStack() as stack:
        stage = Stage(Fleet(pair.dsn), AsyncExitStack())
        await stage.start_server()
        stack.push_async_callback(stage.stop_server)
        for name in AGENTS:
            await stack.enter_async_context(stage.working(work, name=name))
        listening = asyncio.create_task(listen(with_role(pair.dsn, APP), story))
        stack.callback(listening.cancel)
        token = stage.fleet.token("ole@example.com")
        operator = await stack.enter_async_context(HttpRepository(stage.url, token))
        feeding = asyncio.create_task(feed(operator, story))
        await until(lambda: len(story.acknowledged) >= BEFORE and story.refetches > 0)

        await asyncio.to_thread(pair.primary.kill)
        heard = story.refetches
        await asyncio.to_thread(pair.standby.promote)
        await feeding
        with Fleet(pair.standby.dsn) as now:
            await until(lambda: now.one(UNFINISHED) == 0 and story.refetches > heard)
            ended = now.execute("select id, status from jobs where type = 'work'")

    error, proof = await proved(with_role(pair.dsn, APP))
    assert "look before you try again" in unconfirmed.hint
    assert sorted(ended) == sorted((job_id, "succeeded") for job_id in story.acknowledged)
    assert (error, proof.damage, proof.unsealed) == (None, None, 0)
