"""A job in the hands of this agent: its lease is kept, and whoever works on it is told when to stop."""

import asyncio
import logging
from enum import StrEnum
from typing import TypeVar

from agent_console.agent.line import Line
from agent_console.agent.pace import Pace
from agent_console.agent.storable import shortened
from agent_console.domain.errors import BadRequest, Conflict, ConsoleError, Invalid, NotFound, TooLarge
from agent_console.domain.ids import JobId
from agent_console.domain.kinds import EventLevel
from agent_console.domain.working import (
    TEXT_LENGTH,
    Assignment,
    EventLine,
    JobLines,
    JobProgress,
    JobRenewal,
    Lease,
    Reported,
)
from agent_console.repository.operations import Operation
from agent_console.repository.operations.declared import Asked
from agent_console.repository.operations.working import JOBS_LOG, JOBS_PROGRESS, JOBS_RENEW

log = logging.getLogger("agent_console.agent")

# What was said is at fault, not whoever said it: said otherwise, it can be taken.
UNTAKEN = (Invalid, TooLarge, BadRequest)

Heard = TypeVar("Heard", Lease, Reported)


class Stop(StrEnum):
    """Why work on a job has to end before it is done."""

    CANCELLED = "cancelled"
    LOST = "lost"
    LEAVING = "leaving"


class HeldJob:
    def __init__(self, assignment: Assignment, line: Line, pace: Pace, lease_seconds: int) -> None:
        self.assignment = assignment
        self.line = line
        self.pace = pace
        self.stop: Stop | None = None
        self.ending = False
        self.stopping = asyncio.Event()
        self._renewal_seconds = pace.renewal_seconds(lease_seconds)

    @property
    def id(self) -> JobId:
        return self.assignment.id

    @property
    def attempt(self) -> int:
        return self.assignment.attempt

    @property
    def is_lost(self) -> bool:
        return self.stop is Stop.LOST

    def ask_to_stop(self, why: Stop) -> None:
        """The first reason counts, but a lost job is lost whatever was asked before."""
        if self.stop is None or why is Stop.LOST:
            self.stop = why
        if not self.stopping.is_set():
            log.info("%s has to stop: %s", self.id, why.value)
            self.stopping.set()

    async def keep(self) -> None:
        """Renew the lease until somebody else has the job."""
        while not self.is_lost:
            await asyncio.sleep(self._renewal_seconds)
            await self._tell(JOBS_RENEW, JobRenewal(job_id=self.id, attempt=self.attempt))

    async def log_lines(self, events: tuple[EventLine, ...]) -> None:
        """One that the server can't take costs none of the others, and a line in its place tells why."""
        refusal = await self._tell(JOBS_LOG, self._lines(events))
        if not isinstance(refusal, UNTAKEN):
            return
        if half := len(events) // 2:
            await self.log_lines(events[:half])
            await self.log_lines(events[half:])
        else:
            words = shortened(f"A line was refused here: {refusal}", TEXT_LENGTH)
            await self._tell(JOBS_LOG, self._lines((EventLine(level=EventLevel.WARN, message=words),)))

    def _lines(self, events: tuple[EventLine, ...]) -> JobLines:
        return JobLines(job_id=self.id, attempt=self.attempt, events=events)

    async def say_progress(self, progress: JobProgress) -> None:
        await self._tell(JOBS_PROGRESS, progress)

    async def _tell(self, operation: Operation[Asked, Heard], request: Asked) -> ConsoleError | None:
        """Nothing is told of a lost job. What the server refuses is the answer, and the work goes on."""
        if self.is_lost:
            return None
        try:
            answer = await self.line.insist(operation, lambda: request)
        except (Conflict, NotFound) as refusal:
            # A renewal can come in just after the end; whether that was taken, its own answer says.
            if not self.ending:
                log.warning("%s", refusal)
                self.ask_to_stop(Stop.LOST)
        except ConsoleError as refusal:
            log.warning("%s of %s was refused: %s", operation.name, self.id, refusal)
            return refusal
        else:
            if answer.cancel_requested:
                self.ask_to_stop(Stop.CANCELLED)
        return None
