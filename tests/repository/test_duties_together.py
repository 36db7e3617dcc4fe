"""Several processes on one database: what is due is done once, and goes on when one of them is gone."""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy.exc import DBAPIError

from agent_console.cli.opening import opened
from agent_console.config import load
from agent_console.repository.postgres.duties import declared as duty_declared
from agent_console.repository.postgres.duties.declared import in_turn
from agent_console.repository.postgres.duties.records import this_process
from agent_console.repository.postgres.duties.silence import NOTICE_SILENCE
from agent_console.repository.postgres.repository import Backend
from tests.cli.program import environment, started
from tests.support.conversations import add_thread
from tests.support.fleet import Fleet
from tests.support.serving import serving
from tests.support.warm_start import PROGRAMS, WarmProgram

pytestmark = pytest.mark.xdist_group(PROGRAMS)

PATIENCE = 60.0

# What lies on an index of a moment that is over: requests that nobody decided, and jobs whose lease ended.
EXPIRED_APPROVALS = """
    insert into approvals (team_id, id, thread_id, from_agent_id, to_agent_id, route_id, route_version, trace_id,
                           envelope, digest, expires_at)
    select %s, new_id(), %s, %s, %s, new_id(), 1, new_id(), '{}', repeat('0', 64), now() - interval '1 second'
      from generate_series(1, %s)
"""
LEASES_END = """
    update jobs
       set lease_expires_at = now() - interval '1 second', look_at = now() - interval '1 second'
     where status in ('assigned', 'running')
"""
JOBS_DONE_BY = "select 1 from duty_rounds where duty = 'jobs' and done_by like %s"
HELD = "select count(*) from jobs where status in ('assigned', 'running')"
PENDING = "select count(*) from approvals where state = 'pending'"
UNSEALED = "select (select count(*) from audit_log) - (select count(*) from audit_seals)"
EXPIRIES = "select count(*), count(distinct resource_id) from audit_log where action = 'approval.expire'"
LOSSES = "select count(*), count(distinct job_id) from job_events where message like %s"
CHAIN = "select count(*), count(distinct audit_id), min(position), max(position) from audit_seals"


@pytest.fixture
async def backend(fleet: Fleet) -> AsyncIterator[Backend]:
    backend = Backend(fleet.working)
    yield backend
    await backend.close()


async def until(holds: Callable[[], bool]) -> None:
    loop = asyncio.get_running_loop()
    begun = loop.time()
    while not holds():
        assert loop.time() - begun < PATIENCE
        await asyncio.sleep(0.02)


@contextmanager
def server(fleet: Fleet, home: Path) -> Iterator[WarmProgram]:
    """A server in a process of its own, which is there already when the block begins."""
    variables = environment(home, AGENT_CONSOLE_DSN=fleet.working)
    with started("serve", "--port", "0", variables=variables) as program:
        try:
            assert program.stdout is not None
            assert program.stdout.readline().startswith("http://")
            yield program
        finally:
            program.kill()


def let_approvals_expire(fleet: Fleet, count: int) -> None:
    agents = (fleet.agent_id("atlas"), fleet.agent_id("beacon"))
    fleet.execute(EXPIRED_APPROVALS, fleet.team_id(), add_thread(fleet), *agents, count)


async def all_is_done(fleet: Fleet) -> None:
    await until(lambda: fleet.one(PENDING) == 0 and fleet.one(HELD) == 0)
    await until(lambda: fleet.one(UNSEALED) == 0)


def done_once(fleet: Fleet, approvals: int, jobs: int) -> None:
    acts = fleet.one("select count(*) from audit_log")
    assert fleet.execute(EXPIRIES) == [(approvals, approvals)]
    assert fleet.execute(LOSSES, "%lease expired%") == [(jobs, jobs)]
    assert fleet.one("select max(attempt) from jobs where status = 'queued'") == 2
    assert fleet.execute(CHAIN) == [(acts, acts, 1, acts)]


async def test_two_servers_do_what_is_due_once(fleet: Fleet, tmp_path: Path) -> None:
    with server(fleet, tmp_path), server(fleet, tmp_path):
        let_approvals_expire(fleet, 300)
        held = fleet.one(HELD)
        fleet.execute(LEASES_END)

        await all_is_done(fleet)

    assert isinstance(held, int)
    done_once(fleet, 300, held)


async def test_when_one_is_stopped_or_killed_the_other_goes_on(fleet: Fleet, tmp_path: Path) -> None:
    with server(fleet, tmp_path) as one, server(fleet, tmp_path) as other:
        one.send_signal(signal.SIGSTOP)
        let_approvals_expire(fleet, 3)
        await until(lambda: fleet.one(PENDING) == 0)

        one.send_signal(signal.SIGCONT)
        other.kill()
        let_approvals_expire(fleet, 4)
        await until(lambda: fleet.one(PENDING) == 0)
        # Two servers that have only just begun may not have come to the jobs before one of them was killed.
        await until(lambda: fleet.execute(JOBS_DONE_BY, f"%:{one.pid}") != [])

    assert fleet.execute(EXPIRIES) == [(7, 7)]


async def test_who_is_stopped_in_its_turn_loses_it(
    fleet: Fleet, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duty_declared, "PATIENCE", "100ms")
    stopped = Backend(fleet.working)
    fleet.execute("update agent_runtime set last_heartbeat_at = now() - interval '91 seconds'")
    noticed: list[int | None] = []

    with pytest.raises(DBAPIError):
        async with in_turn(stopped, NOTICE_SILENCE.name):
            while not any(noticed):
                assert len(noticed) < 1000, "the turn was never lost"
                noticed.append(await NOTICE_SILENCE.round(backend))
    await stopped.close()

    assert noticed[-1] == 7


async def test_a_console_in_direct_mode_does_the_duties_when_no_server_runs(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    profile = load({"dsn": fleet.working}).profile
    let_approvals_expire(fleet, 3)
    held = fleet.one(HELD)
    fleet.execute(LEASES_END)

    async with opened(profile, lambda _: None, with_duties=True):
        await all_is_done(fleet)

    assert isinstance(held, int)
    done_once(fleet, 3, held)
    assert fleet.one("select done_by from duty_rounds where duty = 'approvals'") == this_process()


async def test_a_console_beside_a_server_does_nothing_twice(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    profile = load({"dsn": fleet.working}).profile

    async with serving(fleet.working), opened(profile, lambda _: None, with_duties=True):
        let_approvals_expire(fleet, 300)
        held = fleet.one(HELD)
        fleet.execute(LEASES_END)
        await all_is_done(fleet)

    assert isinstance(held, int)
    done_once(fleet, 300, held)
