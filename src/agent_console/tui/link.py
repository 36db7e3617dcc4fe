"""The one connection of the console: opens it, watches over it, and heals it without being asked.

Everything the console asks goes through `call`. When an answer shows that the other side is gone, the state
says so at once, the data on the screen stays, and probes with growing pauses look for its return; if they
find nothing for a while, everything behind the port is closed and opened anew, which also brings an embedded
database back that was killed. An answer that does not come in time shows only that this question is slow: the
other side is gone when it does not say who one is either.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from agent_console.domain.errors import (
    CannotConnect,
    ConfigError,
    ConsoleError,
    DatabaseUnavailable,
    Internal,
    SchemaMismatch,
    TimedOut,
    Unauthorized,
)

if TYPE_CHECKING:
    # Models and operations are imported when the link is started: a first frame needs none of them.
    from agent_console.domain.identity import Myself
    from agent_console.repository.operations import Answered, AnyOperation, Asked, Operation
    from agent_console.repository.port import Change, Repository

Clock = Callable[[], datetime]
Opening = Callable[[Callable[[str], None]], "AbstractAsyncContextManager[Repository]"]


class NotSent(CannotConnect):
    """There was no connection, so nothing was asked of the other side and nothing was changed there."""


# After these nobody knows what the other side did with what was asked of it, unless it was not sent at all.
UNSURE = (CannotConnect, DatabaseUnavailable, TimedOut)

# Errors that say something about the other side, not about what was asked of it.
GONE = (CannotConnect, DatabaseUnavailable, TimedOut, SchemaMismatch, Unauthorized, ConfigError)

PAUSE_SECONDS = (0.5, 1.0, 2.0, 4.0, 8.0)
EAR_SECONDS = 0.25
LATE_SECONDS = 15.0
"""So long what was not answered in time is not asked again: it would keep the database busy for nothing."""
PROBES_BEFORE_OPENING_ANEW = 3
"""With the pauses above an embedded database that was killed is started again after three and a half seconds."""


class LinkState(StrEnum):
    STARTING = "starting"
    UP = "up"
    LOST = "lost"


@dataclass(frozen=True)
class LinkStatus:
    state: LinkState
    message: str = ""
    hint: str = ""
    retries: int = 0


NOT_YET = LinkStatus(LinkState.STARTING)


def is_unsure(error: ConsoleError) -> bool:
    """Whether what was asked for may have been done, or not."""
    return isinstance(error, UNSURE) and not isinstance(error, NotSent)


def pause_after(failures: int) -> float:
    return PAUSE_SECONDS[min(max(failures, 1), len(PAUSE_SECONDS)) - 1]


class _Ear:
    """Hears of changes. Opened before anything is fetched: what is fetched afterwards has all that came before, so
    nothing need be fetched a second time."""

    def __init__(self, repository: "Repository", on_change: "Callable[[Change], None]") -> None:
        self._repository = repository
        self._on_change = on_change
        self.heard = asyncio.Event()
        self.passes_on = False

    async def __aenter__(self) -> "_Ear":
        self.hearing = asyncio.create_task(self._hear(), name="changes")
        return self

    async def __aexit__(self, *_: object) -> None:
        self.hearing.cancel()
        await asyncio.wait({self.hearing})
        if not self.hearing.cancelled():
            with suppress(ConsoleError):
                self.hearing.result()

    async def opened(self, seconds: float) -> None:
        """Wait until it hears, or can't, but not for long: who is deaf can still ask."""
        hears = asyncio.create_task(self.heard.wait(), name="first word")
        try:
            await asyncio.wait({self.hearing, hears}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            hears.cancel()
            await asyncio.wait({hears})

    async def _hear(self) -> None:
        async for change in self._repository.changes():
            self.heard.set()
            if self.passes_on:
                self._on_change(change)


class Link:
    def __init__(
        self,
        *,
        on_status: Callable[[LinkStatus], None],
        on_change: "Callable[[Change], None]",
        clock: Clock,
        on_refusal: Callable[[ConsoleError], None] | None = None,
        on_late: Callable[[TimedOut], None] | None = None,
    ) -> None:
        """`on_refusal` is told when the configuration itself is wrong: no waiting will ever mend that. `on_late`
        is told once of a look that took too long; who wanted to change something hears it as the answer."""
        self._on_status = on_status
        self._on_change = on_change
        self._on_refusal = on_refusal
        self._on_late = on_late
        self._clock = clock
        self._repository: Repository | None = None
        self._gone = asyncio.Event()
        self._in_doubt = asyncio.Event()
        self._late: dict[str, tuple[object, TimedOut, float]] = {}
        self._times_up = 0
        self._running: asyncio.Task[None] | None = None
        self._closing = False
        self.status = NOT_YET
        self.me: Myself | None = None
        self.answered_at: datetime | None = None

    # What the console asks

    async def call(self, operation: "Operation[Asked, Answered]", request: "Asked") -> "Answered":
        """Ask the other side. While it is gone nothing is sent, so that no change happens unseen: NotSent."""
        if self._repository is None or self.status.state is not LinkState.UP:
            raise NotSent("There is no connection right now.", hint="It is being restored.")
        if (late := self._still_late(operation, request)) is not None:
            raise late
        asked_in = self._times_up
        try:
            answer = await self._repository.call(operation, request)
        except TimedOut as error:
            # One slow question says nothing of the others: who one is decides it.
            self._was_late(operation, request, error)
            raise
        except GONE as error:
            # An answer this late may tell of a loss that has healed meanwhile.
            if self.status.state is LinkState.UP and asked_in == self._times_up:
                self._lose(error)
            raise
        self.answered_at = self._clock()
        return answer

    async def learn_who(self) -> None:
        """Ask again who one is: somebody may have made one something else meanwhile."""
        from agent_console.domain.records import Nothing
        from agent_console.repository.operations import ME

        self.me = await self.call(ME, Nothing())

    def _was_late(self, operation: "AnyOperation", request: object, error: TimedOut) -> None:
        self._in_doubt.set()
        if operation.changes:
            return
        again_at = asyncio.get_running_loop().time() + LATE_SECONDS
        self._late[operation.name] = request, error, again_at
        if self._on_late is not None:
            self._on_late(error)

    def _still_late(self, operation: "AnyOperation", request: object) -> TimedOut | None:
        asked, error, again_at = self._late.get(operation.name, (None, None, 0.0))
        is_the_same = error is not None and asked == request
        return error if is_the_same and asyncio.get_running_loop().time() < again_at else None

    # Its life

    def start(self, opening: Opening) -> None:
        if self._closing:
            return
        self._running = asyncio.create_task(self._run(opening), name="link")

    @property
    def is_started(self) -> bool:
        return self._running is not None

    async def close(self) -> None:
        """End, and wait until everything that was started for us has ended too."""
        first, self._closing = not self._closing, True
        if self._running is None:
            return
        if first:
            # Once: a second cancellation would hit what the first one is putting in order.
            self._running.cancel()
        await asyncio.wait({self._running})

    async def _run(self, opening: Opening) -> None:
        failures = 0
        while True:
            try:
                async with opening(self._say) as repository:
                    self._repository = repository
                    try:
                        failures = await self._watch(repository, failures)
                    finally:
                        self._repository = None
                continue
            except ConsoleError as error:
                known = error
            except Exception as error:
                # Whatever it is, the console must neither end nor stand still.
                known = Internal(f"A fault of this program: {type(error).__name__}.", hint="It goes on trying.")
            # What fails while it is being closed is closed all the same.
            if self._closing or self._is_hopeless(known):
                return
            failures += 1
            self._lose(known, failures)
            await asyncio.sleep(pause_after(failures))

    def _is_hopeless(self, error: ConsoleError) -> bool:
        """A configuration that never worked; one that did is worth waiting for."""
        if self._on_refusal is None or self._times_up or not isinstance(error, ConfigError):
            return False
        self._on_refusal(error)
        return True

    async def _watch(self, repository: "Repository", failures: int) -> int:
        """Probe until it answers, listen until it is lost, and so on; returns when it should be opened anew."""
        from agent_console.domain.records import Nothing
        from agent_console.repository.operations import ME

        failed_here = unheard = 0
        while failed_here < PROBES_BEFORE_OPENING_ANEW:
            try:
                self.me = await repository.call(ME, Nothing())
            except ConfigError:
                raise
            except ConsoleError as error:
                failed_here += 1
                failures += 1
                self._lose(error, failures)
                await asyncio.sleep(pause_after(failures))
                continue
            failed_here = failures = 0
            async with self._deciding_doubts(repository):
                async with _Ear(repository, self._on_change) as ear:
                    await ear.opened(EAR_SECONDS)
                    self._gone.clear()
                    self.answered_at = self._clock()
                    self._tell(LinkStatus(LinkState.UP))
                    ear.passes_on = True
                    unheard = 0 if await self._listen(ear) else unheard + 1
                # Lost: look at once. Only deaf: what is asked still gets its answer, so there is no hurry.
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause_after(unheard)):
                        await self._gone.wait()
        return failures

    @asynccontextmanager
    async def _deciding_doubts(self, repository: "Repository") -> AsyncIterator[None]:
        deciding = asyncio.create_task(self._decide_doubts(repository), name="deciding doubts")
        try:
            yield
        finally:
            deciding.cancel()
            await asyncio.wait({deciding})
            if not deciding.cancelled():
                deciding.result()

    async def _decide_doubts(self, repository: "Repository") -> None:
        """After an answer that did not come in time ask for one that everybody gets."""
        from agent_console.domain.records import Nothing
        from agent_console.repository.operations import ME

        while True:
            self._in_doubt.clear()
            await self._in_doubt.wait()
            try:
                self.me = await repository.call(ME, Nothing())
            except ConsoleError as error:
                self._lose(error)

    async def _listen(self, ear: "_Ear") -> bool:
        """Listen until the other side is gone or tells no more; False when it never told anything."""
        gone = asyncio.create_task(self._gone.wait(), name="gone")
        try:
            await asyncio.wait({ear.hearing, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
            await asyncio.wait({gone})
        return ear.heard.is_set()

    def _say(self, message: str) -> None:
        """Progress of opening; it may come from another thread."""
        if self._running is not None:
            self._running.get_loop().call_soon_threadsafe(self._tell_progress, message)

    def _tell_progress(self, message: str) -> None:
        if self.status.state is not LinkState.UP:
            self._tell(LinkStatus(self.status.state, message, retries=self.status.retries))

    def _lose(self, error: ConsoleError, retries: int = 0) -> None:
        self._gone.set()
        self._tell(LinkStatus(LinkState.LOST, error.message, error.hint, retries))

    def _tell(self, status: LinkStatus) -> None:
        if status == self.status:
            return
        if status.state is LinkState.UP:
            self._times_up += 1
        self.status = status
        self._on_status(status)
