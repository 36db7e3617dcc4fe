"""How much of what stays open one caller may have at once: live streams, and long polls that wait."""

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from starlette.types import ASGIApp, Receive, Scope, Send

from agent_console.domain.errors import RateLimited
from agent_console.server.allowed import Allowed
from agent_console.server.arrival import Arrival, arrival_of
from agent_console.server.failures import answer
from agent_console.server.metrics import STREAM_PATHS

RETRY_SECONDS = 5


class OpenAtOnce:
    """Counts what is open just now; who has nothing open is not remembered."""

    def __init__(self, allowed: Allowed) -> None:
        self._allowed = allowed
        self._open: Counter[tuple[str, str]] = Counter()

    def __len__(self) -> int:
        return len(self._open)

    @contextmanager
    def stream(self, arrival: Arrival) -> Iterator[None]:
        with ExitStack() as held:
            if arrival.mark is not None:
                held.enter_context(self._one_more("streams", arrival.mark, self._allowed.streams))
            if not arrival.is_local:
                most = self._allowed.address_streams
                held.enter_context(self._one_more("streams of an address", arrival.counted, most))
            yield

    @contextmanager
    def long_poll(self, arrival: Arrival) -> Iterator[None]:
        with self._one_more("waiting requests", arrival.mark or arrival.counted, self._allowed.waiting):
            yield

    @contextmanager
    def _one_more(self, what: str, whose: str, most: int) -> Iterator[None]:
        if self._open[what, whose] >= most:
            raise RateLimited(
                f"There are {most} open {what} already, which is all there may be.",
                hint="Close one that is not needed any more, then try again.",
                details={"retry_after": RETRY_SECONDS, "at_once": most},
            )
        self._open[what, whose] += 1
        try:
            yield
        finally:
            self._open[what, whose] -= 1
            if not self._open[what, whose]:
                del self._open[what, whose]


class StreamLimit:
    """Refuses one stream too many. `app.state.open_at_once` does the counting."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] not in STREAM_PATHS:
            await self.app(scope, receive, send)
            return
        counting: OpenAtOnce = scope["app"].state.open_at_once
        try:
            with counting.stream(arrival_of(scope)):
                await self.app(scope, receive, send)
        except RateLimited as refusal:
            # The app answers its own refusals itself, so this one is ours, and nothing has left yet.
            await answer(refusal)(scope, receive, send)
