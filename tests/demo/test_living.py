"""The demo's fleet at work: real agents at a real server, hurried."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pytest

from agent_console.agent import JobContext
from agent_console.database.demo_history import ADMIN, ensure_demo_team, remember
from agent_console.database.operator_token import demo_token
from agent_console.demo.asking import Tempo
from agent_console.demo.living import Orders, live
from agent_console.domain.approvals import Approving, Rejecting
from agent_console.domain.ids import ApprovalId
from agent_console.repository.http.repository import HttpRepository
from agent_console.repository.operations.approvals import APPROVALS_APPROVE, APPROVALS_REJECT
from tests.support.fleet import Fleet
from tests.support.serving import serving

HURRIED = Tempo(between_jobs=0.4, between_stories=0.0, before_again=3600.0, looks=0.5, after_refusal=0.1)
WAITING = """
    select p.id, p.digest from approvals p
      join agents f on f.id = p.from_agent_id join agents t on t.id = p.to_agent_id
     where p.state = 'pending' and f.name = %s and t.name = %s
"""
ONLINE = "select count(*) from agent_runtime where presence = 'online'"


async def until(holds: Callable[[], bool], what: str) -> None:
    """Looks seldom: each look asks the database, and many are at work meanwhile."""
    for _ in range(600):
        if holds():
            return
        await asyncio.sleep(0.1)
    pytest.fail(f"not within a minute: {what}")


async def at_once(job: JobContext, seconds: float) -> bool:
    """Nobody in here has time to lose."""
    await asyncio.sleep(0)
    return not job.cancelled


class Demo:
    """The database of a demo, and the folder with the keys of its agents."""

    def __init__(self, fleet: Fleet, folder: Path) -> None:
        self.fleet = fleet
        self.folder = folder
        ensure_demo_team(fleet.administration)
        self.token = demo_token(fleet.administration, folder / "demo.token")

    @asynccontextmanager
    async def living(self, tempo: Tempo = HURRIED) -> AsyncIterator[HttpRepository]:
        """The fleet at work; the value is the person at the console."""
        until_told, ready = asyncio.Event(), asyncio.Event()
        async with serving(self.fleet.working) as url, HttpRepository(url, self.token) as ana:
            orders = Orders(url, self.token, self.folder / "agents")
            living = asyncio.create_task(live(orders, until_told, ready.set, tempo=tempo, resting=at_once))
            try:
                await until(lambda: ready.is_set() or living.done(), "the agents are here")
                yield ana
            finally:
                until_told.set()
                await living

    async def waiting(self, asks: str, asked: str) -> tuple[ApprovalId, str]:
        await until(lambda: bool(self.fleet.execute(WAITING, asks, asked)), f"{asks} → {asked} waits")
        [(approval_id, digest)] = self.fleet.execute(WAITING, asks, asked)
        assert isinstance(approval_id, UUID)
        return ApprovalId.of(approval_id), str(digest)

    async def said(self, who: str, words: str) -> None:
        query = """
            select count(*) from messages m join agents a on a.id = m.author_agent_id
             where a.name = %s and position(%s in m.content) > 0
        """
        await until(lambda: self.fleet.one(query, who, words) == 1, f"{who} says {words!r} once")

    async def has_jobs(self, condition: str) -> None:
        query = f"select exists (select from jobs where {condition})"
        await until(lambda: self.fleet.one(query) is True, condition)


@pytest.fixture
def demo(database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Demo:
    monkeypatch.setenv("AGENT_CONSOLE_SERVER_KEY", "A" * 43)
    return Demo(Fleet(database), tmp_path)


async def test_what_is_decided_at_the_console_is_how_the_story_goes_on(demo: Demo) -> None:
    async with demo.living(replace(HURRIED, between_jobs=3600.0)) as ana:
        approval, digest = await demo.waiting("dispatch", "gantry")
        await ana.call(APPROVALS_APPROVE, Approving(approval_id=approval, digest_seen=digest))
        await demo.said("gantry", "runs on all 3 machines of edge-oslo")
        await demo.said("dispatch", "is out and the nightly build is green")

        approval, digest = await demo.waiting("cartographer", "beacon")
        no = Rejecting(approval_id=approval, digest_seen=digest, reason="Not before noon.")
        await ana.call(APPROVALS_REJECT, no)
        await demo.said("cartographer", "Ana Costa said no: Not before noon. I took the averages of last year")

        approval, _ = await demo.waiting("lantern", "gantry")
        demo.fleet.execute("update approvals set expires_at = now() where id = %s", approval)
        await demo.said("lantern", "\x1b[2J")
        await demo.said("lantern", "Nobody decided in time. I leave it at reading.")
        await demo.said("ember", "I may not deploy it myself")


async def test_a_second_start_goes_on_with_the_same_fleet_jobs_and_stories(demo: Demo) -> None:
    agents = "select id from agents order by id"
    async with demo.living():
        await demo.waiting("dispatch", "gantry")
        remember(demo.fleet.administration, datetime.now(UTC))
        await demo.has_jobs("status = 'queued' and attempt > 1")
        await demo.has_jobs("status = 'failed' and created_at > now() - interval '10 minutes'")
        await demo.has_jobs("type = 'transcribe' and status = 'queued'")
        assert demo.fleet.one(ONLINE) == 12
    demo.fleet.execute("update agents set revoked_at = now(), revocation_reason = 'a try' where name = 'keystone'")
    demo.fleet.execute("update threads set title = 'Counted' where title like 'Stock count%%'")
    first = demo.fleet.execute(agents)
    left = demo.fleet.one("select count(*) from jobs where status in ('assigned', 'running')")

    async with demo.living() as ana:
        remember(demo.fleet.administration, datetime.now(UTC))
        approval, digest = await demo.waiting("dispatch", "gantry")
        no = Rejecting(approval_id=approval, digest_seen=digest, reason="Not at night")
        await ana.call(APPROVALS_REJECT, no)
        await demo.said("dispatch", "Ana Costa said no: Not at night. Then without a deployment")
        await demo.said("dispatch", "runs on with the flag off")
        # The one that was revoked meanwhile stays away, and the others are at work.
        assert demo.fleet.one(ONLINE) == 11

    kept = demo.fleet.execute("select name, value from settings order by name")
    assert kept == [("approval_expiry_minutes", 25), ("job_history_days", 1)]
    assert left == 0, "whoever leaves takes no job along"
    assert demo.fleet.execute(agents) == first
    assert demo.fleet.one("select count(*) from jobs where type = 'transcribe'") == 1
    assert demo.fleet.one("select count(*) from threads") == 4
    assert demo.fleet.one("select count(*) from messages where content like 'Aisle 001%%'") == 1
    assert demo.fleet.one("select count(*) from users where email = %s", ADMIN) == 1
