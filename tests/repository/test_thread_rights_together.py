"""Rights in a thread that end while somebody waits for it, through both repositories."""

import asyncio

import psycopg
import pytest

from agent_console.domain.errors import NotFound
from agent_console.domain.messages import NewMessage
from agent_console.domain.records import Request
from agent_console.domain.threads import (
    NewParticipant,
    ThreadChange,
)
from agent_console.repository.operations import AnyOperation
from agent_console.repository.operations.messages import (
    MESSAGES_POST,
)
from agent_console.repository.operations.threads import (
    THREADS_GRANT,
    THREADS_UPDATE,
)
from tests.repository.conftest import VIEWER, OpenRepository
from tests.support.conversations import OTHER, add_person, add_thread, let_in
from tests.support.fleet import Fleet
from tests.support.locks import somebody_waits_for_a_lock


@pytest.mark.rule("R002-134")
async def test_rights_that_end_while_somebody_waits_for_the_thread_have_ended(
    open_repository: OpenRepository, fleet: Fleet
) -> None:
    add_person(fleet)
    thread_id = add_thread(fleet)
    mia = let_in(fleet, thread_id, OTHER, write=True, share=True)
    other = await open_repository(OTHER)
    waiting: tuple[tuple[AnyOperation, Request], ...] = (
        (MESSAGES_POST, NewMessage(thread_id=thread_id, content="too late")),
        (THREADS_GRANT, NewParticipant(thread_id=thread_id, user_id=fleet.user_id(VIEWER))),
        (THREADS_UPDATE, ThreadChange(thread_id=thread_id, title="mine")),
    )

    with psycopg.connect(fleet.administration) as holding:
        holding.execute("select from threads where id = %s for no key update", (thread_id,))
        holding.execute("delete from thread_participants where id = %s", (mia,))
        calls = [asyncio.create_task(other.call(operation, request)) for operation, request in waiting]
        await somebody_waits_for_a_lock(fleet, len(calls))
    outcomes = await asyncio.gather(*calls, return_exceptions=True)

    assert [type(outcome) for outcome in outcomes] == [NotFound] * len(calls)
    assert fleet.one("select count(*) from messages") == 0
