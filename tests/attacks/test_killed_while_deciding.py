"""Whoever decides is killed at every step of it: the request then waits or is decided, never both or neither."""

from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from itertools import count
from typing import Any

import psycopg
import pytest
from psycopg import AsyncConnection, AsyncCursor

from agent_console.domain.approvals import Approval
from agent_console.domain.errors import ConsoleError
from tests.faults.invariants import DECIDED_TWICE, UNEVEN_DECISIONS
from tests.repository.test_approval_race import decide, request_of
from tests.support.asking import ANA, callers
from tests.support.fleet import Fleet

# Half a decision would be one of these without the others.
WHOLE = """
    select a.state,
           (select count(*) from audit_log l
             where l.action in ('approval.approve', 'approval.reject') and l.resource_id = %(shown)s),
           (select count(*) from runs r where r.id = a.run_id),
           (select count(*) from jobs j where j.run_id = a.run_id)
      from approvals a where a.id = %(id)s
"""
PENDING, APPROVED, REJECTED = ("pending", 0, 0, 0), ("approved", 1, 1, 1), ("rejected", 1, 0, 0)


class Killed:
    """At the given step of a transaction its session is gone at once, as when the process that had it is killed.

    A step is a statement that was done, or the commit; the last one is after it.
    """

    def __init__(self) -> None:
        self.steps_left: int | None = None

    async def step(self, connection: AsyncConnection[Any]) -> None:
        if self.steps_left is None or connection.autocommit:
            return
        self.steps_left -= 1
        if self.steps_left < 0:
            self.steps_left = None
            connection.pgconn.finish()
            raise psycopg.OperationalError("killed")


@contextmanager
def killing() -> Iterator[Killed]:
    killed, execute, commit = Killed(), AsyncCursor.execute, AsyncConnection.commit

    async def executed(cursor: AsyncCursor[Any], *args: Any, **named: Any) -> Any:
        done = await execute(cursor, *args, **named)
        await killed.step(cursor.connection)
        return done

    async def committed(connection: AsyncConnection[Any]) -> None:
        await killed.step(connection)
        await commit(connection)
        await killed.step(connection)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(AsyncCursor, "execute", executed)
        patched.setattr(AsyncConnection, "commit", committed)
        yield killed


@pytest.mark.parametrize("approves", [True, False], ids=["approve", "reject"])
async def test_a_decision_is_made_whole_or_not_at_all(
    fleet: Fleet, approves: bool, record_property: Callable[[str, object], None]
) -> None:
    decided = APPROVED if approves else REJECTED
    seen = list[object]()
    async with AsyncExitStack() as stack:
        asked = await request_of(fleet, stack)
        ana = await (await stack.enter_async_context(callers(fleet, "direct"))).person(ANA)
        with killing() as killed:
            for steps in count():
                killed.steps_left = steps
                try:
                    await decide(ana, asked, approves=approves)
                except ConsoleError:
                    seen.append(standing(fleet, asked))
                if killed.steps_left is not None or seen[-1] == decided:
                    break
        killed_after = len(seen)
        # Whoever was never told looks again, or tries again and hears that it was done.
        if seen[-1] == PENDING:
            await decide(ana, asked, approves=approves)

    assert seen[:-1] == [PENDING] * (killed_after - 1)
    assert killed_after > 8
    assert standing(fleet, asked) == decided
    assert [fleet.one(DECIDED_TWICE), fleet.one(UNEVEN_DECISIONS)] == [0, 0]
    record_property("tried", killed_after)


def standing(fleet: Fleet, asked: Approval) -> object:
    with psycopg.connect(fleet.administration) as connection:
        return connection.execute(WHOLE, {"id": asked.id, "shown": str(asked.id)}).fetchone()
