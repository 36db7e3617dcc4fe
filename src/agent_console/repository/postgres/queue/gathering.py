"""Do together what is waiting at the same time: one statement for many callers, each with its own answer."""

import asyncio
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from agent_console.domain.errors import LOOK_FIRST, ConsoleError, DatabaseUnavailable, SchemaMismatch, TimedOut

Group = TypeVar("Group", bound=Hashable)
Item = TypeVar("Item")
Answer = TypeVar("Answer")

AT_MOST = 64
AT_ONCE = 2


@dataclass(eq=False)
class _Waiting(Generic[Item, Answer]):
    item: Item
    key: Hashable
    answer: "asyncio.Future[Answer]"

    def fail(self, error: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)


@dataclass(eq=False)
class _Line(Generic[Item, Answer]):
    """Who waits in one group, the tasks that work for it, and how many of those have a batch in hand."""

    waiting: "deque[_Waiting[Item, Answer]]" = field(default_factory=deque)
    workers: "set[asyncio.Task[None]]" = field(default_factory=set)
    in_hand: int = 0

    def take(self, limit: int) -> "list[_Waiting[Item, Answer]]":
        """The next batch. Of two items with one key the second waits: a statement writes a row once."""
        taken: dict[Hashable, _Waiting[Item, Answer]] = {}
        left: deque[_Waiting[Item, Answer]] = deque()
        while self.waiting and len(taken) < limit:
            waiting = self.waiting.popleft()
            if waiting.answer.done():
                continue
            if waiting.key in taken:
                left.append(waiting)
            else:
                taken[waiting.key] = waiting
        self.waiting.extendleft(reversed(left))
        return list(taken.values())


def stopping() -> TimedOut:
    return TimedOut("The program is stopping.", hint=LOOK_FIRST)


class Gatherer(Generic[Group, Item, Answer]):
    """Hands whatever is waiting in a group to `do`, which gives one answer, or one refusal, for each item.

    There is no timer: the first item is done at once, and whatever comes while it is being done makes the
    next batch. A batch that fails as a whole is done again one by one, so that nobody pays for another's
    mistake; only when the database itself is away is everyone told so. When more than `crowd` are waiting (by
    default more than one batch takes) another worker helps, and they share those who wait: as many of them as are
    `busy`, for whom it matters more to be served soon than to be served in turn.
    """

    def __init__(
        self,
        do: Callable[[Group, Sequence[Item]], Awaitable[Sequence[Answer | ConsoleError]]],
        *,
        at_most: int = AT_MOST,
        at_once: int = AT_ONCE,
        crowd: int | None = None,
        busy: Callable[[Item], bool] = lambda _: True,
    ) -> None:
        self._do = do
        self._at_most = at_most
        self._at_once = at_once
        self._crowd = at_most if crowd is None else crowd
        self._busy = busy
        self._lines: defaultdict[Group, _Line[Item, Answer]] = defaultdict(_Line)
        self._closed = False

    async def add(self, group: Group, key: Hashable, item: Item) -> Answer:
        if self._closed:
            raise stopping()
        line = self._lines[group]
        waiting = _Waiting[Item, Answer](item, key, asyncio.get_running_loop().create_future())
        line.waiting.append(waiting)
        # A second worker is worth its connection only when many wait for the first to come back.
        if not line.workers or (len(line.workers) < self._at_once and len(line.waiting) > self._crowd):
            worker = asyncio.create_task(self._work(group, line))
            line.workers.add(worker)
            worker.add_done_callback(line.workers.discard)
        return await waiting.answer

    def _share(self, line: _Line[Item, Answer]) -> int:
        """How many one worker takes. A crowd is shared with the workers that are free: while the database works
        for some of them this process answers the others, where all together would wait for each by turns."""
        crowds = sum(self._busy(waiting.item) for waiting in line.waiting) // max(1, self._crowd)
        shares = max(1, min(self._at_once - line.in_hand, crowds))
        return min(self._at_most, -(-len(line.waiting) // shares))

    async def _work(self, group: Group, line: _Line[Item, Answer]) -> None:
        while not self._closed and (batch := line.take(self._share(line))):
            line.in_hand += 1
            try:
                await self._do_batch(group, batch)
            except Exception as error:
                # A mistake of our own, perhaps after the work was done: not again, and the others go on.
                for waiting in batch:
                    waiting.fail(error)
            except BaseException:
                for waiting in (*batch, *line.waiting):
                    waiting.fail(stopping())
                raise
            finally:
                line.in_hand -= 1
        # At once, not when the task is seen to have ended: who comes between the two would wait for nobody.
        line.workers -= {asyncio.current_task()}
        if not line.waiting and self._lines.get(group) is line and not line.workers:
            del self._lines[group]

    async def _do_batch(self, group: Group, batch: "list[_Waiting[Item, Answer]]") -> None:
        try:
            answers = await self._do(group, [waiting.item for waiting in batch])
        except (DatabaseUnavailable, SchemaMismatch, TimedOut) as away:
            for waiting in batch:
                waiting.fail(away)
        except ConsoleError as error:
            if len(batch) == 1:
                batch[0].fail(error)
                return
            for waiting in batch:
                await self._do_batch(group, [waiting])
        else:
            for waiting, answer in zip(batch, answers, strict=True):
                if isinstance(answer, ConsoleError):
                    waiting.fail(answer)
                elif not waiting.answer.done():
                    waiting.answer.set_result(answer)

    async def close(self) -> None:
        """What is being done may end; nobody new is taken, and who waits is told so."""
        self._closed = True
        for line in self._lines.values():
            while line.waiting:
                line.waiting.popleft().fail(stopping())
        workers = {worker for line in self._lines.values() for worker in line.workers}
        if not workers:
            return
        await asyncio.wait(workers, timeout=1.0)
        for worker in workers:
            worker.cancel()
            with suppress(asyncio.CancelledError, ConsoleError):
                await worker
