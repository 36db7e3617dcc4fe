"""The agent: signs of life, claims, several jobs at once, and an orderly end."""

import asyncio
import logging
from collections.abc import Callable, Sized
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import NoReturn, TypeVar

from agent_console.agent.held import HeldJob, Stop
from agent_console.agent.line import AWAY, Line, is_passing
from agent_console.agent.outcome import Handler
from agent_console.agent.pace import Pace
from agent_console.agent.signals import heeding
from agent_console.agent.tracing import Traced, job_spans, untraced
from agent_console.agent.unknown import UnknownJobs
from agent_console.agent.work import JobAtWork, NextJob
from agent_console.domain.errors import ConsoleError, Forbidden, Invalid, Unauthorized
from agent_console.domain.ids import JobId
from agent_console.domain.presence import CommandName, Heartbeat, HeartbeatAnswer
from agent_console.domain.records import Nothing
from agent_console.domain.working import (
    JOBS_PER_CLAIM,
    LEASE_SECONDS,
    Assignment,
    Claim,
    Claimed,
    ClaimWanted,
    WhyNothing,
)
from agent_console.repository.http.repository import HttpRepository
from agent_console.repository.operations.presence import HEARTBEAT_DISCONNECT, HEARTBEAT_SEND
from agent_console.repository.operations.working import CLAIMS_TAKE

GRACE_SECONDS = 10.0
DEFAULT_PACE = Pace()
ANSWERED_AT_ONCE = frozenset({WhyNothing.AT_YOUR_LIMIT, WhyNothing.DRAINED})

log = logging.getLogger("agent_console.agent")

AnyHandler = TypeVar("AnyHandler", bound=Handler)


class Agent:
    """An agent of the fleet. Give it handlers, then `await agent.run()`.

    `key` is the agent's own key (agt_key_…); one key is for one running agent. `capabilities`, when given, replace
    what the agent was registered with. `grace` is how many seconds a job may go on that was asked to stop, and how
    long the agent waits for its jobs when it leaves. `ca_file`, or else AGENT_CONSOLE_CA_FILE, names the
    certificates that alone may vouch for the server. Nothing of it is tied to one event loop until it runs.
    """

    def __init__(
        self,
        url: str,
        key: str,
        *,
        concurrency: int = 1,
        capabilities: tuple[str, ...] | None = None,
        lease_seconds: int = LEASE_SECONDS,
        grace: float = GRACE_SECONDS,
        pace: Pace = DEFAULT_PACE,
        ca_file: Path | None = None,
    ) -> None:
        if not 1 <= concurrency <= JOBS_PER_CLAIM:
            raise Invalid(
                f"An agent works on 1 to {JOBS_PER_CLAIM} jobs at once, not on {concurrency}.",
                hint="Start a second agent, with a key of its own, for more.",
            )
        self.url = url
        self._key = key
        self._concurrency = concurrency
        self._capabilities = capabilities
        self._lease_seconds = lease_seconds
        self._grace = grace
        self._pace = pace
        self._ca_file = ca_file
        self._handlers: dict[str | None, Handler] = {}
        self._traced: Traced = untraced
        self._jobs: dict[JobAtWork, asyncio.Task[None]] = {}
        self._unknown = UnknownJobs(pace)
        self._is_here = False
        self._changed, self._leaving, self._at_once = asyncio.Event(), asyncio.Event(), asyncio.Event()

    def handle(self, job_type: str | None = None) -> Callable[[AnyHandler], AnyHandler]:
        """Decorate the function that works jobs of this type; without a type, every job that has no other.

        It returns the result: a JSON object, a sentence, or None. It raises JobFailure to let the job fail.
        """

        def known(handler: AnyHandler) -> AnyHandler:
            self._handlers[job_type] = handler
            return handler

        return known

    async def run(self, *, signals: bool = True) -> None:
        """Work until asked to leave: by `leave`, by the server, or by SIGTERM, SIGINT and SIGHUP.

        The first signal lets running jobs end within the grace, the second ends everything at once. A refused key
        raises Unauthorized or Forbidden; a server that is away is waited for.
        """
        if not self._handlers:
            raise Invalid("This agent can do nothing.", hint="Give it a handler: @agent.handle()")
        async with (
            job_spans() as self._traced,
            HttpRepository(self.url, self._key, ca_file=self._ca_file) as repository,
        ):
            line = Line(repository, self._pace)
            with heeding(self.leave) if signals else nullcontext():
                await self._live(line)

    def leave(self, *, at_once: bool = False) -> None:
        """End: take no more jobs and let those that run end within the grace, or give them all back now."""
        if at_once:
            self._at_once.set()
        self._leaving.set()
        self._changed.set()

    @property
    def left_at_once(self) -> bool:
        return self._at_once.is_set()

    @property
    def jobs(self) -> tuple[JobId, ...]:
        """The jobs it works on now."""
        return tuple(work.held.id for work in self._jobs)

    async def _live(self, line: Line) -> None:
        beating = asyncio.create_task(self._beat(line))
        claiming = asyncio.create_task(self._claim_jobs(line))
        leaving = asyncio.create_task(self._leaving.wait())
        looking = asyncio.create_task(self._unknown.look(line))
        try:
            await asyncio.wait({beating, claiming, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if self._leaving.is_set():
                await self._finish(claiming)
            else:
                await self._finish_refused(beating, claiming)
        finally:
            await self._end_all(beating, claiming, leaving, looking)
            await self._disconnect(line)

    async def _finish_refused(self, beating: asyncio.Task[NoReturn], claiming: asyncio.Task[None]) -> None:
        """Nobody listens to an agent that is not let in; every other refusal costs only what it would do next."""
        refused = claiming if claiming.done() else beating
        try:
            refused.result()
        except (Unauthorized, Forbidden):
            raise
        except ConsoleError as refusal:
            log.warning("%s", refusal)
            self.leave()
            await self._finish(claiming)
            raise

    async def _finish(self, claiming: asyncio.Task[None]) -> None:
        """Wait for what runs. The last claim is waited for too: what it brings is given back."""
        if self._jobs:
            log.info("Leaving; %s may still end within %g s.", _counted(self._jobs), self._grace)
        else:
            log.info("Leaving.")
        at_once = asyncio.create_task(self._at_once.wait())
        open_tasks = {claiming, *self._jobs.values()}
        try:
            async with asyncio.timeout(self._grace):
                while open_tasks and not at_once.done():
                    done, _ = await asyncio.wait({at_once, *open_tasks}, return_when=asyncio.FIRST_COMPLETED)
                    open_tasks -= done
        except TimeoutError:
            log.warning("The grace is over; what is left of %s is given back.", _counted(self._jobs))
        finally:
            at_once.cancel()
        for work in self._jobs:
            work.held.ask_to_stop(Stop.LEAVING)
        if self._jobs and not self._at_once.is_set():
            await asyncio.wait(self._jobs.values(), timeout=min(self._grace, self._pace.last_seconds) + 0.5)

    async def _end_all(self, *others: asyncio.Task[object]) -> None:
        """Nothing that this agent began is left behind, whatever ended it."""
        for work in self._jobs:
            work.cut_short()
        jobs = set(self._jobs.values())
        if jobs:
            await asyncio.wait(jobs, timeout=self._pace.last_seconds)
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        # One that is told the end of its work when it is cancelled goes on to tell that, and is cancelled again.
        while jobs := {task for task in jobs if not task.done()}:
            for task in jobs:
                task.cancel()
            await asyncio.wait(jobs, timeout=self._pace.last_seconds)

    async def _disconnect(self, line: Line) -> None:
        """The last word, if somebody hears it: what this agent held goes back to the queue at no cost."""
        with suppress(ConsoleError, TimeoutError):
            async with asyncio.timeout(self._pace.last_seconds):
                await line.ask(HEARTBEAT_DISCONNECT, Nothing())

    async def _beat(self, line: Line) -> NoReturn:
        loop = asyncio.get_running_loop()
        self._heed(await line.insist(HEARTBEAT_SEND, self._heartbeat))
        self._unknown.lost_answer()
        self._is_here = True
        self._changed.set()
        # Who looks on sees nothing else until there is a job.
        log.info("Here, at %s; up to %s at a time.", self.url, _counted(range(self._concurrency)))
        while True:
            beaten_at = loop.time()
            while (left := beaten_at + self._beat_seconds() - loop.time()) > 0:
                await self._pause(left)
            self._heed(await line.insist(HEARTBEAT_SEND, self._heartbeat))

    def _beat_seconds(self) -> float:
        return self._pace.beat_seconds(self._lease_seconds, busy=bool(self._jobs))

    def _heartbeat(self) -> Heartbeat:
        held = tuple({work.held.id for work in self._jobs if not work.held.is_lost})
        return Heartbeat(capabilities=self._capabilities, current_jobs=held)

    def _heed(self, answer: HeartbeatAnswer) -> None:
        for command in answer.commands:
            match command.name:
                case CommandName.CANCEL:
                    for work in self._jobs:
                        if work.held.id == command.job_id:
                            work.held.ask_to_stop(Stop.CANCELLED)
                case CommandName.STOP | CommandName.HIBERNATE if not self._leaving.is_set():
                    log.warning("The server asks this agent to %s.", command.name.value)
                    self.leave()
                case _:
                    # Who is drained is given no jobs; there is nothing else to do.
                    pass

    async def _claim_jobs(self, line: Line) -> None:
        tries = 0
        while not self._leaving.is_set():
            # What is refused, such as the key, is refused once, and not all that an agent asks at the same time.
            if not (self._is_here and self._room):
                await self._pause(None)
                continue
            try:
                claimed = await line.ask(CLAIMS_TAKE, self._claim())
            except ConsoleError as error:
                if not is_passing(error):
                    raise
                if isinstance(error, AWAY):
                    self._unknown.lost_answer()
                await self._pause(line.seconds_until_again(error, tries))
                tries += 1
                continue
            tries = 0
            self._begin(claimed, line)
            if claimed.reason in ANSWERED_AT_ONCE:
                await self._pause(self._pace.refused_seconds)

    @property
    def _room(self) -> int:
        return self._concurrency - len(self._jobs)

    def _types(self) -> tuple[str, ...] | None:
        """The types there is a handler for; None when one takes everything."""
        named = tuple(job_type for job_type in self._handlers if job_type is not None)
        return None if None in self._handlers else named

    def _claim(self) -> Claim:
        return Claim(
            count=self._room,
            lease_seconds=self._lease_seconds,
            allowed_types=self._types(),
            auto_start=True,
            wait_seconds=self._pace.claim_seconds,
        )

    def _next_wanted(self) -> ClaimWanted | None:
        """The place of a job that ends is free for one more."""
        if self._leaving.is_set():
            return None
        return ClaimWanted(lease_seconds=self._lease_seconds, allowed_types=self._types(), auto_start=True)

    def _begin(self, claimed: Claimed, line: Line) -> None:
        """An agent that leaves begins nothing: what it got goes back when it disconnects."""
        if self._leaving.is_set():
            return
        for assignment in claimed.jobs:
            self._unknown.begins(assignment)
            work = self._work_on(assignment, line)
            self._jobs[work] = asyncio.create_task(self._run(work, line))
            log.info("%s begins: %s, attempt %d", assignment.id, assignment.type, assignment.attempt)
        if claimed.jobs:
            self._changed.set()

    def _work_on(self, assignment: Assignment, line: Line) -> JobAtWork:
        handler = self._handlers.get(assignment.type) or self._handlers[None]
        held = HeldJob(assignment, line, self._pace, self._lease_seconds)
        asks = NextJob(self._next_wanted, self._unknown.lost_answer)
        return JobAtWork(held, self._traced(handler), self._grace, asks)

    async def _run(self, work: JobAtWork, line: Line) -> None:
        try:
            following = await work.run()
        finally:
            del self._jobs[work]
            self._unknown.ends(work.held.assignment)
            self._changed.set()
        if following is not None:
            self._begin(following, line)

    async def _pause(self, seconds: float | None) -> None:
        """Until something of this agent has changed, or so long."""
        self._changed.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._changed.wait()


def _counted(jobs: Sized) -> str:
    return "1 job" if len(jobs) == 1 else f"{len(jobs)} jobs"
