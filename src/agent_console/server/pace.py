"""How often one credential may ask for one thing: counted in this process, over the minute that just passed.

It is counted before anyone looks at the database, by the credential and not by whose it says it is: a forged one
uses up nobody's share but its own.
"""

import logging
import math
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from agent_console.domain.audit import AuditEvent
from agent_console.domain.errors import ConsoleError, Forbidden, RateLimited, Unauthorized
from agent_console.domain.kinds import Decision
from agent_console.repository.operations import AnyOperation
from agent_console.repository.operations.presence import AUTH_RATE_LIMITED
from agent_console.repository.postgres import audit
from agent_console.repository.postgres.database_time import transaction_time
from agent_console.repository.postgres.repository import PostgresRepository

WINDOW_SECONDS = 60.0
MOST_REMEMBERED = 20_000

log = logging.getLogger("agent_console.server")


@dataclass
class _Asked:
    times: deque[float] = field(default_factory=deque)
    refused_at: float | None = None


@dataclass(frozen=True)
class TooOften:
    """A refusal: when to come back, and whether it is the first of its window."""

    retry_after: int
    first: bool


class Pace:
    """Remembers when each credential asked for each operation, for a minute and for a bounded number of them."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, *, most_remembered: int = MOST_REMEMBERED
    ) -> None:
        self._clock = clock
        self._most_remembered = most_remembered
        self._asked: OrderedDict[tuple[str, str], _Asked] = OrderedDict()

    def __len__(self) -> int:
        return len(self._asked)

    def ask(self, operation: str, credential: str, per_minute: int) -> TooOften | None:
        """Count one more, or say that it is too many; what is refused does not count."""
        now = self._clock()
        asked = self._remembered((operation, credential), now)
        while asked.times and asked.times[0] <= now - WINDOW_SECONDS:
            asked.times.popleft()
        if len(asked.times) < per_minute:
            asked.times.append(now)
            return None
        first = asked.refused_at is None or asked.refused_at <= now - WINDOW_SECONDS
        if first:
            asked.refused_at = now
        return TooOften(math.ceil(asked.times[0] + WINDOW_SECONDS - now), first)

    def _remembered(self, who: tuple[str, str], now: float) -> _Asked:
        """Whoever asked longest ago is forgotten first; those who ask too often are never among them."""
        while self._asked and next(iter(self._asked.values())).times[-1] <= now - WINDOW_SECONDS:
            self._asked.popitem(last=False)
        asked = self._asked.setdefault(who, _Asked())
        self._asked.move_to_end(who)
        while len(self._asked) > self._most_remembered:
            self._asked.popitem(last=False)
        return asked


def too_often(operation: AnyOperation, refusal: TooOften) -> RateLimited:
    return RateLimited(
        f"{operation.name} was asked for more than {operation.per_minute} times within a minute.",
        hint=f"Wait {refusal.retry_after} s, then ask less often.",
        details={"retry_after": refusal.retry_after, "per_minute": operation.per_minute},
    )


async def tell(repository: PostgresRepository, operation: str, per_minute: int) -> None:
    """Write down whom we refuse, once that is proved. The refusal holds whether or not it can be written."""
    try:
        await repository.backend.database.within_time(_write(repository, operation, per_minute))
    except (Unauthorized, Forbidden):
        raise
    except ConsoleError as error:
        log.warning("a refusal of %s could not be written to the audit trail: %s", operation, error)


async def _write(repository: PostgresRepository, operation: str, per_minute: int) -> None:
    async with repository.backend.database.changing() as connection:
        caller = await repository.identify(connection)
        at = await transaction_time(connection)
        whose = ("user", caller.user_id) if caller.agent_id is None else ("agent", caller.agent_id)
        event = AuditEvent(
            AUTH_RATE_LIMITED,
            whose[0],
            str(whose[1]),
            {"operation": operation, "per_minute": per_minute},
            decision=Decision.BLOCK,
        )
        await audit.append_for(connection, caller.team_id, audit.actor_of(caller, repository.place), event, at)
