"""Whether everybody came back without a hand, and whether all that was asked for was done in the end."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from agent_console.domain.audit_proof import Damage, Verification
from agent_console.domain.ids import JobId
from agent_console.repository.operations.audit_trail import AUDIT_VERIFY
from agent_console.repository.postgres.repository import open_direct
from tests.faults.life import Life
from tests.faults.world import OPERATORS, RETRIES_ARE_DUE, World

PATIENCE = 60.0
LOOK_SECONDS = 0.05

HEARD_SINCE = """
    select count(*) from agents a join agent_runtime r on r.team_id = a.team_id and r.agent_id = a.id
     where a.name = any(%s) and r.presence = 'online' and r.last_heartbeat_at > %s
"""
SUCCEEDED = "select count(*) from jobs where id = any(%s::uuid[]) and status = 'succeeded'"
UNFINISHED = "select count(*) from jobs where finished_at is null"
PENDING = "select count(*) from approvals where state = 'pending'"
UNSEALED = "select (select count(*) from audit_log) - (select count(*) from audit_seals)"


async def so(holds: Callable[[], bool], what: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, what()
        await asyncio.sleep(LOOK_SECONDS)


@dataclass
class Back:
    """The jobs that were asked for, and after how many seconds each of these was so."""

    jobs: list[JobId] = field(default_factory=list)
    after: dict[str, float] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        return max(self.after.values())

    def __str__(self) -> str:
        return ", ".join(f"{what} {seconds:.1f} s" for what, seconds in self.after.items())


async def everybody_is_back(world: World, life: Life) -> Back:
    """Each server takes a job, which is done; every agent is heard; the console is told."""
    began, back = time.monotonic(), Back()

    def note(what: str, *, holds: bool) -> bool:
        if holds and what not in back.after:
            back.after[what] = time.monotonic() - began
        return what in back.after

    for place in range(2):
        back.jobs.append(await life.put_in(place))
        note(f"server {place} took a job", holds=True)
    with world.looking() as fleet:
        since, heard = fleet.one("select clock_timestamp()"), life.told.heard

        def all_are() -> bool:
            life.still_alive()
            fleet.execute(RETRIES_ARE_DUE)
            agents = fleet.one(HEARD_SINCE, world.everybody, since) == len(world.everybody)
            return all(
                [
                    note("the jobs were done", holds=fleet.one(SUCCEEDED, back.jobs) == len(back.jobs)),
                    note("every agent was heard", holds=agents),
                    note("the console was told", holds=life.told.heard > heard),
                ]
            )

        await so(all_are, lambda: f"somebody did not come back; so far: {back}")
    return back


async def everything_is_done(world: World, life: Life) -> None:
    await life.stop_feeding()
    with world.looking() as fleet:

        def done() -> bool:
            fleet.execute(RETRIES_ARE_DUE)
            return all(fleet.one(question) == 0 for question in (UNFINISHED, PENDING, UNSEALED))

        await so(done, lambda: [fleet.one(question) for question in (UNFINISHED, PENDING, UNSEALED)])


async def proved(world: World) -> tuple[Damage | None, int]:
    """All of the trail, from its first act: what is damaged in it, and how many acts have no seal."""
    after = None
    async with open_direct(world.fleet.working, team="example", user=OPERATORS[0]) as ana:
        while True:
            part = await ana.call(AUDIT_VERIFY, Verification(after=after))
            if part.damage is not None or part.next is None:
                return part.damage, part.unsealed
            after = part.next
