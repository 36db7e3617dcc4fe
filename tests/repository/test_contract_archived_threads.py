"""What can still be done in a thread that is archived."""

import pytest

from agent_console.domain.errors import Conflict, Forbidden, NotFound
from agent_console.domain.kinds import Visibility
from agent_console.domain.messages import MessageQuery, NewMessage
from agent_console.domain.records import Request
from agent_console.domain.threads import (
    Archived,
    NewParticipant,
    ParticipantAsked,
    ParticipantRights,
    ThreadAsked,
    ThreadChange,
)
from agent_console.repository.operations import AnyOperation
from agent_console.repository.operations.messages import (
    MESSAGES_LIST,
    MESSAGES_POST,
)
from agent_console.repository.operations.threads import (
    THREADS_ARCHIVE,
    THREADS_CHANGE_RIGHTS,
    THREADS_GET,
    THREADS_GRANT,
    THREADS_REVOKE,
    THREADS_UPDATE,
)
from tests.repository.conftest import ADMIN, OPERATOR, VIEWER, OpenRepository
from tests.repository.test_contract_threads import listed
from tests.support.conversations import add_thread, let_in, say, told
from tests.support.fleet import Fleet


@pytest.mark.rule("R002-19", "R002-32", "U002-7")
async def test_an_archived_thread_is_read_but_not_written(open_repository: OpenRepository, fleet: Fleet) -> None:
    thread_id, still_open = add_thread(fleet), add_thread(fleet)
    let_in(fleet, thread_id, VIEWER)
    let_in(fleet, still_open, VIEWER)
    say(fleet, thread_id)
    owner, viewer, admin = [await open_repository(who) for who in (OPERATOR, VIEWER, ADMIN)]
    asked = ThreadAsked(thread_id=thread_id)

    with pytest.raises(Forbidden):
        await viewer.call(THREADS_ARCHIVE, asked)
    archived = await owner.call(THREADS_ARCHIVE, asked)
    with pytest.raises(Conflict, match="was archived at"):
        await owner.call(THREADS_ARCHIVE, asked)
    writing: tuple[tuple[AnyOperation, Request], ...] = (
        (MESSAGES_POST, NewMessage(thread_id=thread_id, content="one more")),
        (THREADS_UPDATE, ThreadChange(thread_id=thread_id, title="x")),
        (THREADS_UPDATE, ThreadChange(thread_id=thread_id, visibility=Visibility.SHARED)),
        (THREADS_GRANT, NewParticipant(thread_id=thread_id, agent_id=fleet.agent_id("atlas"))),
    )
    for operation, request in writing:
        with pytest.raises(Conflict, match="archived"):
            await owner.call(operation, request)

    assert archived.archived_at is not None
    assert (archived.can_write, archived.can_share) == (False, False)
    assert len((await viewer.call(MESSAGES_LIST, MessageQuery(thread_id=thread_id))).items) == 1
    for somebody in (owner, viewer, admin):
        assert await listed(somebody) == [still_open]
        assert await listed(somebody, archived=Archived.ONLY) == [thread_id]
        assert await listed(somebody, archived=Archived.YES) == [still_open, thread_id]
    assert told(fleet, thread_id) == [("thread.archive", "thread", {"withdrawn_approvals": 0})]


@pytest.mark.rule("R002-19")
async def test_an_archived_thread_can_still_be_closed_to_somebody(
    open_repository: OpenRepository, fleet: Fleet
) -> None:
    thread_id = add_thread(fleet, visibility="shared")
    vera, mia = let_in(fleet, thread_id, VIEWER), let_in(fleet, thread_id, ADMIN, write=True)
    owner = await open_repository(OPERATOR)
    await owner.call(THREADS_ARCHIVE, ThreadAsked(thread_id=thread_id))
    whose = {"thread_id": thread_id, "participant_id": mia}

    with pytest.raises(Conflict, match="archived"):
        await owner.call(THREADS_CHANGE_RIGHTS, ParticipantRights(**whose, can_share=True))
    less = await owner.call(THREADS_CHANGE_RIGHTS, ParticipantRights(**whose, can_write=False))
    await owner.call(THREADS_REVOKE, ParticipantAsked(thread_id=thread_id, participant_id=vera))
    closed = await owner.call(THREADS_UPDATE, ThreadChange(thread_id=thread_id, visibility=Visibility.PRIVATE))

    assert (less.can_read, less.can_write) == (True, False)
    assert closed.visibility is Visibility.PRIVATE
    with pytest.raises(NotFound):
        await (await open_repository(VIEWER)).call(THREADS_GET, ThreadAsked(thread_id=thread_id))
