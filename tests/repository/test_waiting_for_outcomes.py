"""Who waits for what became of a delegation is told at once, looks seldom, and waits as long as it asked to."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from time import monotonic

import pytest
from sqlalchemy import Engine, event

from agent_console.domain.delegation import WAIT_SECONDS, Delegation, DelegationAsked
from agent_console.repository.operations.runs import RUNS_OUTCOME
from agent_console.repository.port import Repository, Topic
from agent_console.repository.postgres.policy import outcomes
from tests.support.asking import Callers, add_route, asks, callers
from tests.support.conversations import add_thread, let_in
from tests.support.fleet import Fleet
from tests.support.until import until

# What is told to everybody of the team, as when too much has changed to be named.
UNNAMED = "select pg_notify('agent_console_changes', json_build_object('team', %s::text, 'topic', 'runs')::text)"
# Before it waits, while it begins to listen, and when it is told that it listens.
LOOKS_AT_FIRST = 3


class Looks:
    """How often a delegation has been looked at in this process."""

    def __init__(self) -> None:
        self.done = 0

    def hear(self, _connection: object, _cursor: object, statement: str, *_: object) -> None:
        if statement.lstrip().startswith("SELECT") and ("FROM runs" in statement or "FROM approvals" in statement):
            self.done += 1


@pytest.fixture
def looks() -> Iterator[Looks]:
    looks = Looks()
    event.listen(Engine, "after_cursor_execute", looks.hear)
    yield looks
    event.remove(Engine, "after_cursor_execute", looks.hear)


@pytest.fixture
async def crew(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Callers]:
    """Nobody finds anything by looking again after a while: whoever is not told hears nothing."""
    monkeypatch.setattr(outcomes, "LOOK_AGAIN_SECONDS", 3600.0)
    async with callers(fleet, "direct") as crew:
        yield crew


async def asked_for(crew: Callers, fleet: Fleet, policy: str) -> tuple[Repository, Delegation]:
    atlas, thread_id = await crew.agent("atlas"), add_thread(fleet)
    let_in(fleet, thread_id, "atlas", write=True)
    add_route(fleet, "atlas", "beacon", policy)
    return atlas, await asks(atlas, fleet, thread_id)


async def waits(atlas: Repository, made: Delegation, seconds: float) -> Delegation:
    run_id, approval_id = made.run and made.run.id, made.approval and made.approval.id
    asked = DelegationAsked(run_id=run_id, approval_id=approval_id, seen=made.mark, wait_seconds=seconds)
    return await atlas.call(RUNS_OUTCOME, asked)


async def heard(waiting: "asyncio.Task[Delegation]") -> str:
    """In half the time that it waits."""
    async with asyncio.timeout(WAIT_SECONDS / 2):
        return (await waiting).mark


@pytest.mark.parametrize("topic", [Topic.RUNS, Topic.JOBS, None], ids=["its run", "its job", "no name"])
async def test_who_waits_for_a_run_is_told_at_once(
    crew: Callers, fleet: Fleet, looks: Looks, topic: Topic | None
) -> None:
    atlas, made = await asked_for(crew, fleet, "allowed")
    assert made.run is not None
    assert crew.backend is not None
    looks.done = 0
    waiting = asyncio.create_task(waits(atlas, made, WAIT_SECONDS))
    await until(lambda: looks.done >= 2 * LOOKS_AT_FIRST or waiting.done())

    fleet.execute("update runs set status = 'running', started_at = now() where id = %s", made.run.id)
    if topic is None:
        fleet.execute(UNNAMED, fleet.team_id())
    else:
        of = made.run.id if topic is Topic.RUNS else made.run.job_id
        assert of is not None
        crew.backend.announcer.announce(fleet.team_id(), topic, of)

    assert await heard(waiting) == "allowed:running"


async def test_who_waits_for_a_person_is_told_at_once(crew: Callers, fleet: Fleet, looks: Looks) -> None:
    atlas, made = await asked_for(crew, fleet, "requires_human_approval")
    assert made.approval is not None
    assert crew.backend is not None
    looks.done = 0
    waiting = asyncio.create_task(waits(atlas, made, WAIT_SECONDS))
    await until(lambda: looks.done >= 2 * LOOKS_AT_FIRST or waiting.done())

    fleet.execute("update approvals set state = 'expired', decided_at = now() where id = %s", made.approval.id)
    crew.backend.announcer.announce(fleet.team_id(), Topic.APPROVALS, made.approval.id)

    assert await heard(waiting) == "expired"


async def test_who_waits_in_vain_looks_seldom_and_waits_as_long_as_it_asked_to(
    crew: Callers, fleet: Fleet, looks: Looks
) -> None:
    atlas, made = await asked_for(crew, fleet, "allowed")
    looks.done, began = 0, monotonic()

    answer = await waits(atlas, made, 1.0)

    assert answer.mark == made.mark
    assert monotonic() - began >= 1.0
    assert 2 * LOOKS_AT_FIRST <= looks.done < 20
