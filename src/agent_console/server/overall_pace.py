"""How often one credential, and one address, may ask for anything at all: token buckets in this process.

A bucket holds a minute's worth and fills as time passes, so whoever was quiet may hurry for a while. What was
refused takes nothing out.
"""

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from fastapi import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from agent_console.domain.errors import Forbidden, RateLimited, Unauthorized
from agent_console.domain.secrets import Secret
from agent_console.repository.postgres.identify import by_token
from agent_console.repository.postgres.repository import PostgresRepository
from agent_console.server import pace
from agent_console.server.allowed import Allowed
from agent_console.server.arrival import Arrival, arrival_of
from agent_console.server.credentials import place_of
from agent_console.server.failures import answer
from agent_console.server.pace import TooOften

MOST_REMEMBERED = 20_000
TOLD_EVERY_SECONDS = 60.0
ANYTHING = "anything"


@dataclass
class _Bucket:
    left: float
    at: float
    told_at: float | None = None


class Buckets:
    """One bucket for each of a bounded number of callers; who asked longest ago is forgotten first."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, *, most_remembered: int = MOST_REMEMBERED
    ) -> None:
        self._clock = clock
        self._most_remembered = most_remembered
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def __len__(self) -> int:
        return len(self._buckets)

    def take(self, who: str, per_minute: int) -> TooOften | None:
        """Take one out, or say when there is one again."""
        now, filling = self._clock(), per_minute / 60
        bucket = self._buckets.setdefault(who, _Bucket(per_minute, now))
        self._buckets.move_to_end(who)
        if len(self._buckets) > self._most_remembered:
            self._buckets.popitem(last=False)
        bucket.left, bucket.at = min(per_minute, bucket.left + (now - bucket.at) * filling), now
        if bucket.left >= 1:
            bucket.left -= 1
            return None
        first = bucket.told_at is None or bucket.told_at <= now - TOLD_EVERY_SECONDS
        if first:
            bucket.told_at = now
        return TooOften(math.ceil((1 - bucket.left) / filling), first)


@dataclass(frozen=True)
class _Refused:
    who: str
    too_often: TooOften
    per_minute: int

    def error(self) -> RateLimited:
        wait = self.too_often.retry_after
        return RateLimited(
            f"{self.who} asked more than {self.per_minute} times within a minute.",
            hint=f"Wait {wait} s, then ask less often.",
            details={"retry_after": wait, "per_minute": self.per_minute},
        )


class OverallPace:
    """Refuses before the body is read and before the database is touched.

    `app.state` holds the buckets, of credentials and of addresses.
    """

    def __init__(self, app: ASGIApp, allowed: Allowed) -> None:
        self.app = app
        self.allowed = allowed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refused = self._refused(scope, arrival_of(scope)) if scope["type"] == "http" else None
        if refused is None:
            await self.app(scope, receive, send)
            return
        if refused.too_often.first:
            await _tell(scope, refused)
        await answer(refused.error())(scope, receive, send)

    def _refused(self, scope: Scope, arrival: Arrival) -> _Refused | None:
        state = scope["app"].state
        most = self.allowed.address_requests_per_minute
        if most and not arrival.is_local:
            refusal = state.address_buckets.take(arrival.counted, most)
            if refusal is not None:
                return _Refused("This address", refusal, most)
        most = self.allowed.requests_per_minute
        if most and (mark := arrival.mark) is not None:
            refusal = state.credential_buckets.take(mark, most)
            if refusal is not None:
                return _Refused("This credential", refusal, most)
        return None


async def _tell(scope: Scope, refused: _Refused) -> None:
    """Have it written down for whoever the credential proves; a stranger concerns no team."""
    word = arrival_of(scope).word
    if word is None:
        return
    with suppress(Unauthorized, Forbidden):
        place = place_of(Request(scope))
        identify = by_token(Secret.parse(word), place)
        repository = PostgresRepository(scope["app"].state.backend, identify, place=place)
        await pace.tell(repository, ANYTHING, refused.per_minute)
