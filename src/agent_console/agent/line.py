"""The line to the server: whoever insists asks again until somebody answers."""

import asyncio
import logging
import random
from collections.abc import Callable

from agent_console.agent.pace import Pace
from agent_console.domain.errors import (
    CannotConnect,
    ConsoleError,
    DatabaseUnavailable,
    Internal,
    SchemaMismatch,
    TimedOut,
    Unauthorized,
)
from agent_console.repository.operations import Answered, Asked, Operation
from agent_console.repository.port import Repository

# The server, or what stands between, may be better in a moment; every other refusal is an answer.
AWAY = (CannotConnect, TimedOut, DatabaseUnavailable, SchemaMismatch, Internal)

SPREAD = 0.2
_CHANCE = random.SystemRandom()

log = logging.getLogger("agent_console.agent")


def is_passing(error: ConsoleError) -> bool:
    """Whether the same question makes sense again in a while."""
    return isinstance(error, AWAY) or _told_to_wait(error) is not None


def _told_to_wait(error: ConsoleError) -> float | None:
    seconds = error.details.get("retry_after")
    return float(seconds) if isinstance(seconds, int | float) else None


class Line:
    def __init__(self, repository: Repository, pace: Pace) -> None:
        self._repository = repository
        self._pace = pace
        self._away = False
        self._refused: Unauthorized | None = None

    async def ask(self, operation: Operation[Asked, Answered], request: Asked) -> Answered:
        """Once. Every refusal is a ConsoleError.

        A credential that proves nothing is brought no second time: a server counts that, and shuts out everybody
        at this address.
        """
        if self._refused is not None:
            raise self._refused
        try:
            answer = await self._repository.call(operation, request)
        except ConsoleError as error:
            if isinstance(error, Unauthorized):
                self._refused = error
            self._note(error)
            raise
        self._note(None)
        return answer

    async def insist(self, operation: Operation[Asked, Answered], request: Callable[[], Asked]) -> Answered:
        """Until there is an answer, or a refusal that will not pass. The request is made anew for every try."""
        tries = 0
        while True:
            try:
                return await self.ask(operation, request())
            except ConsoleError as error:
                if not is_passing(error):
                    raise
                seconds = self.seconds_until_again(error, tries)
            tries += 1
            await asyncio.sleep(seconds)

    def seconds_until_again(self, error: ConsoleError, tries: int) -> float:
        """Longer from try to try, and never in step with the other agents of the server."""
        steps = self._pace.retry_seconds
        step = steps[min(tries, len(steps) - 1)]
        return (_told_to_wait(error) or step) * _CHANCE.uniform(1 - SPREAD, 1 + SPREAD)

    def _note(self, error: ConsoleError | None) -> None:
        """Say once that the server is away, and once that it is back."""
        away = isinstance(error, AWAY)
        if away and not self._away:
            log.warning("%s Trying again until it answers.", error)
        elif self._away and not away:
            log.warning("The server answers again.")
        self._away = away
