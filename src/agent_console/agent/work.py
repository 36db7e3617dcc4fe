"""One job from the moment it is taken to its end."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from pydantic import ValidationError

from agent_console.agent.held import UNTAKEN, HeldJob, Stop
from agent_console.agent.job import JobContext
from agent_console.agent.outcome import (
    Done,
    Handler,
    JobFailure,
    Outcome,
    done_request,
    failed_request,
    failure_of,
    outcome_of,
    refused,
)
from agent_console.agent.output import JobOutput
from agent_console.agent.storable import NotJson
from agent_console.domain.errors import Conflict, ConsoleError, Invalid, NotFound
from agent_console.domain.problems import first_problem
from agent_console.domain.working import CancelAcknowledged, Claimed, ClaimWanted, Ended
from agent_console.repository.operations import Operation
from agent_console.repository.operations.declared import Asked
from agent_console.repository.operations.working import JOBS_ACKNOWLEDGE, JOBS_COMPLETE, JOBS_FAIL

log = logging.getLogger("agent_console.agent")


@dataclass(frozen=True)
class NextJob:
    """What is wanted with the end of a job, and who is told when nobody knows whether it came."""

    wanted: Callable[[], ClaimWanted | None]
    lost_answer: Callable[[], None]


class JobAtWork:
    """Runs the handler, keeps the lease meanwhile, and tells the end.

    `grace` is how long a handler that was asked to stop may go on before it is cancelled.
    """

    def __init__(self, held: HeldJob, handler: Handler, grace: float, next_job: NextJob) -> None:
        self.held = held
        self._handler = handler
        self._grace = grace
        self._next_job = next_job
        self._handling: asyncio.Task[Outcome | None] | None = None

    async def run(self) -> Claimed | None:
        """What was claimed in the same breath as the end was told."""
        output = JobOutput(self.held)
        keeping = asyncio.create_task(self.held.keep())
        self._handling = asyncio.create_task(self._handled(JobContext(self.held, output)))
        ending = asyncio.create_task(self._cancel_after_grace(self._handling))
        try:
            outcome = await self._handling
            # Whoever asks to stop from here on is late: it has ended.
            stopped = self.held.stop
            if stopped is Stop.LEAVING:
                await output.close(within=self.held.pace.last_seconds)
                return None
            await output.close()
            return None if self.held.is_lost else await self._tell_end(outcome, stopped)
        finally:
            for task in (keeping, ending, self._handling):
                task.cancel()
            output.abandon()
            await asyncio.gather(keeping, ending, self._handling, return_exceptions=True)

    def cut_short(self) -> None:
        """End the handler now, whatever is left of the grace."""
        self.held.ask_to_stop(Stop.LEAVING)
        if self._handling is not None:
            self._handling.cancel()

    async def _handled(self, job: JobContext) -> Outcome | None:
        """None when it was stopped before it had an outcome."""
        try:
            return outcome_of(await self._handler(job))
        except JobFailure as failure:
            return failure
        except asyncio.CancelledError:
            if job.cancelled:
                return None
            if (handling := asyncio.current_task()) is not None and handling.cancelling():
                raise
            return failure_of(RuntimeError("it was cancelled by something of its own"))
        except Exception as error:
            log.exception("The handler of %s failed", job.id)
            return failure_of(error)

    async def _cancel_after_grace(self, handling: asyncio.Task[Outcome | None]) -> None:
        await self.held.stopping.wait()
        leaving = self.held.stop is Stop.LEAVING
        await asyncio.sleep(min(self._grace, self.held.pace.last_seconds) if leaving else self._grace)
        handling.cancel()

    async def _tell_end(self, outcome: Outcome | None, stopped: Stop | None) -> Claimed | None:
        held = self.held
        held.ending = True
        try:
            match stopped, outcome:
                case None, Done() as done:
                    return await self._tell_done(done)
                case None, JobFailure() as failure:
                    return await self._tell_failed(failure)
                case _:
                    return await self._end(JOBS_ACKNOWLEDGE, self._acknowledged)
        except (Conflict, NotFound) as refusal:
            # It was told before and the answer was lost, or the job is somebody else's by now.
            log.warning("The end of %s changed nothing: %s", held.id, refusal)
        except ConsoleError as refusal:
            log.warning("The end of %s could not be told: %s", held.id, refusal)
        return None

    async def _tell_done(self, done: Done) -> Claimed | None:
        assignment = self.held.assignment
        try:
            return await self._end(JOBS_COMPLETE, lambda wanted: done_request(assignment, done, wanted))
        except NotJson as error:
            refusal = f"it {error}"
        except ValidationError as error:
            refusal = first_problem(error)
        except UNTAKEN as error:
            refusal = str(error)
        return await self._tell_failed(refused(refusal))

    async def _tell_failed(self, failure: JobFailure) -> Claimed | None:
        assignment = self.held.assignment
        return await self._end(JOBS_FAIL, lambda wanted: failed_request(assignment, failure, wanted))

    def _acknowledged(self, wanted: ClaimWanted | None) -> CancelAcknowledged:
        return CancelAcknowledged(job_id=self.held.id, attempt=self.held.attempt, claim_next=wanted)

    async def _end(
        self, operation: Operation[Asked, Ended], request: Callable[[ClaimWanted | None], Asked]
    ) -> Claimed | None:
        """The next job is asked for in the first try only: an answer that got lost must not bring another, and a
        wish that is refused, as when the team has shortened its leases, must not cost what was done."""
        wanted = self._next_job.wanted()
        tries = 0

        def told() -> Asked:
            nonlocal tries
            tries += 1
            if tries > 1:
                self._next_job.lost_answer()
                return request(None)
            return request(wanted)

        try:
            ended = await self.held.line.insist(operation, told)
        except Invalid:
            if wanted is None or tries > 1:
                raise
            ended = await self.held.line.insist(operation, lambda: request(None))
        log.info("%s ended: %s", self.held.id, ended.status.value)
        return ended.next
