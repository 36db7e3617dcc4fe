"""Jobs that are this agent's without its knowing: the answer to a claim was lost, or it was killed and is back."""

import asyncio
import logging
import random
from collections import deque
from time import monotonic

from agent_console.agent.line import SPREAD, Line, is_passing
from agent_console.agent.pace import Pace
from agent_console.domain.errors import ConsoleError
from agent_console.domain.ids import JobId
from agent_console.domain.records import Instant, Nothing
from agent_console.domain.working import Assignment, JobFailed, JobHeld
from agent_console.repository.operations.working import CLAIMS_HELD, JOBS_FAIL

REMEMBERED = 1_000
LEFT = "The agent held this job and did not know of it: the answer to its claim was lost, or it was started again."

log = logging.getLogger("agent_console.agent")

_CHANCE = random.SystemRandom()

Fence = tuple[JobId, int]
Silent = dict[Fence, tuple[Instant, float]]
"""Of each unknown job the end of its lease, and since when it has been that."""


class UnknownJobs:
    """Gives them back, so that nobody has to wait for the end of their leases.

    A job may be on its way here just now, or be worked on by another process that was given the same key. So one
    is given back only when it was unknown, and its lease not renewed, for longer than a busy agent is ever silent.
    It counts as a try, as it does when a lease ends: nobody knows how far it came, and whoever works on it all the
    same is refused from then on.
    """

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._working: set[Fence] = set()
        # An answer may tell of a job that has ended since it was asked for.
        self._ended: deque[Fence] = deque(maxlen=REMEMBERED)
        self._unsure = asyncio.Event()
        self._until = 0.0

    def lost_answer(self) -> None:
        """Of something that may have brought a job. Whoever has just begun knows nothing of any before."""
        self._until = monotonic() + self._pace.unsure_seconds
        self._unsure.set()

    def begins(self, job: Assignment) -> None:
        self._working.add((job.id, job.attempt))

    def ends(self, job: Assignment) -> None:
        self._working.discard((job.id, job.attempt))
        self._ended.append((job.id, job.attempt))

    async def look(self, line: Line) -> None:
        """For as long as one may still turn up, and then again when another answer is lost."""
        while True:
            await self._unsure.wait()
            self._unsure.clear()
            silent: Silent = {}
            while monotonic() < self._until:
                try:
                    silent = await self._looked(line, silent)
                except ConsoleError as refusal:
                    if not is_passing(refusal):
                        # A server that does not know the question; what is wrong with a key, the next claim tells.
                        break
                    self._until = monotonic() + self._pace.unsure_seconds
                # All agents of a server lose their answers together, and should not ask together.
                await asyncio.sleep(self._pace.silent_seconds * _CHANCE.uniform(1, 1 + SPREAD))

    async def _looked(self, line: Line, before: Silent) -> Silent:
        held = (await line.ask(CLAIMS_HELD, Nothing())).jobs
        now, silent = monotonic(), Silent()
        for job in held:
            fence = job.id, job.attempt
            if fence in self._working or fence in self._ended:
                continue
            seen = before.get(fence)
            if seen is None or seen[0] != job.lease_expires_at:
                seen = job.lease_expires_at, now
            elif now - seen[1] >= self._pace.silent_seconds:
                await self._give_back(line, job)
            silent[fence] = seen
        return silent

    async def _give_back(self, line: Line, job: JobHeld) -> None:
        log.warning("%s is given back: this agent holds it and never began it.", job.id)
        failed = JobFailed(job_id=job.id, attempt=job.attempt, error=LEFT, error_code="agent_lost")
        try:
            await line.ask(JOBS_FAIL, failed)
        except ConsoleError as refusal:
            if is_passing(refusal):
                raise
            log.info("%s went back by itself: %s", job.id, refusal)
