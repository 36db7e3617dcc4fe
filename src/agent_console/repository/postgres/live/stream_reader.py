"""One who reads live changes: what waits to be read, and whether it is still known who reads."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from agent_console.domain.identity import Caller
from agent_console.domain.ids import TeamId
from agent_console.domain.secrets import Secret
from agent_console.repository.port import REFETCH, Change, Topic
from agent_console.repository.postgres.live.notices import Notice

WAITING_AT_MOST = 1000

# What decides who a reader is.
OF_STANDING = frozenset({Topic.USERS, Topic.TOKENS, Topic.AGENTS})


def anything(notice: Notice) -> bool:
    return True


@dataclass(eq=False)
class StreamReader:
    """A reader that can't keep up is told to fetch again instead of holding anyone up.

    With a `caller` it is somebody outside, whose standing is looked at again and again; without one it is a part
    of the house. One that `reads_itself` takes notices only as a sign to look, and is shown by its own reading
    what it may see. Nothing is told before the first REFETCH, which covers it.
    """

    team_id: TeamId
    caller: Caller | None = None
    secret: Secret | None = None
    wants: Callable[[Notice], bool] = anything
    reads_itself: bool = False
    doubted: bool = field(default=False, init=False)
    _waiting: "asyncio.Queue[Change | None]" = field(
        default_factory=lambda: asyncio.Queue(WAITING_AT_MOST), init=False
    )
    _began: bool = field(default=False, init=False)
    _missed: bool = field(default=False, init=False)

    def give(self, change: Change) -> None:
        if change == REFETCH:
            self._began = True
        elif not self._began:
            return
        if self.doubted:
            self._missed = True
        elif self._waiting.full():
            self._drop()
            self._waiting.put_nowait(REFETCH)
        else:
            self._waiting.put_nowait(change)

    def _drop(self) -> None:
        while not self._waiting.empty():
            self._waiting.get_nowait()

    def stands_on(self, notice: Notice) -> bool:
        """Whether the notice is about who this reader is."""
        if self.caller is None or notice.id is None or notice.topic not in OF_STANDING:
            return False
        credential = None if self.secret is None else self.secret.owner
        return notice.id in (self.caller.user_id, self.caller.agent_id, credential)

    def doubt(self) -> None:
        """From here on nothing is told, until `settle` says who this is now."""
        if self.doubted:
            return
        self._missed = not self._waiting.empty()
        self._drop()
        self.doubted = True
        self._waiting.put_nowait(None)

    def settle(self, caller: Caller) -> bool:
        """Whether the reader has to fetch again."""
        fetch = self._missed or caller != self.caller
        self.caller = caller
        self.doubted = self._missed = False
        return fetch and self._began

    async def next(self) -> tuple[Change, ...] | None:
        """All that waits, at least one; None when somebody has to find out who this reader is now."""
        change = await self._waiting.get()
        heard: list[Change] = []
        while change is not None:
            heard.append(change)
            if self._waiting.empty():
                return tuple(heard)
            change = self._waiting.get_nowait()
        return None
