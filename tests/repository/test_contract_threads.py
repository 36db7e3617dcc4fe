"""Threads and the rights of those who take part in them, through both repositories."""

from collections.abc import Sequence
from uuid import UUID

import pytest

from agent_console.domain.agents import AgentAsked
from agent_console.domain.errors import Conflict, ConsoleError, Forbidden, Invalid, NotFound
from agent_console.domain.ids import AgentId, ParticipantId, ThreadId, UserId
from agent_console.domain.kinds import ParticipantType, Visibility
from agent_console.domain.messages import MessageAsked, MessageQuery, MessageSearch, NewMessage
from agent_console.domain.threads import (
    NewParticipant,
    NewThread,
    Participant,
    ParticipantAsked,
    ParticipantQuery,
    ParticipantRights,
    ThreadAsked,
    ThreadChange,
    ThreadQuery,
    WhichThreads,
)
from agent_console.repository.operations import AnyOperation
from agent_console.repository.operations.agents import AGENTS_DELETE
from agent_console.repository.operations.messages import (
    MESSAGES_GET,
    MESSAGES_LIST,
    MESSAGES_POST,
    MESSAGES_SEARCH,
)
from agent_console.repository.operations.threads import (
    THREADS_ARCHIVE,
    THREADS_CHANGE_RIGHTS,
    THREADS_CREATE,
    THREADS_GET,
    THREADS_GRANT,
    THREADS_LIST,
    THREADS_PARTICIPANTS,
    THREADS_REVOKE,
    THREADS_UPDATE,
)
from agent_console.repository.port import Repository
from tests.repository.conftest import ADMIN, OPERATOR, VIEWER, OpenRepository
from tests.support.acting_agent import acting_agent
from tests.support.conversations import OTHER, add_person, add_run, add_thread, let_in, say, told
from tests.support.fleet import Fleet


async def listed(repository: Repository, **query: object) -> list[ThreadId]:
    page = await repository.call(THREADS_LIST, ThreadQuery.model_validate(query))
    return [thread.id for thread in page.items]


async def participants(repository: Repository, thread_id: ThreadId) -> Sequence[Participant]:
    return (await repository.call(THREADS_PARTICIPANTS, ParticipantQuery(thread_id=thread_id))).items


def rights(who: Participant) -> tuple[bool, bool, bool]:
    return who.can_read, who.can_write, who.can_share


@pytest.mark.rule("R002-14", "R002-15", "R002-16", "R002-17", "R002-18", "R002-20", "R002-21", "U002-1", "U002-7")
async def test_whoever_begins_a_thread_may_do_everything_in_it(
    open_repository: OpenRepository, fleet: Fleet
) -> None:
    operator, viewer = await open_repository(OPERATOR), await open_repository(VIEWER)

    made = await operator.call(THREADS_CREATE, NewThread(title="launch plan"))
    untitled = await operator.call(THREADS_CREATE, NewThread(visibility=Visibility.SHARED))
    with pytest.raises(Forbidden):
        await viewer.call(THREADS_CREATE, NewThread())
    (owner,) = await participants(operator, made.id)

    assert await operator.call(THREADS_GET, ThreadAsked(thread_id=made.id)) == made
    assert (made.title, made.visibility, made.archived_at) == ("launch plan", Visibility.PRIVATE, None)
    assert (made.created_by, made.created_by_user_id) == ("Ole Berg", fleet.user_id(OPERATOR))
    assert (made.can_write, made.can_share, made.updated_at) == (True, True, made.created_at)
    assert (untitled.title, untitled.visibility) == (None, Visibility.SHARED)
    assert (owner.participant_type, owner.user_id) == (ParticipantType.HUMAN, fleet.user_id(OPERATOR))
    assert (rights(owner), owner.name, owner.created_by) == ((True, True, True), "Ole Berg", "Ole Berg")
    assert told(fleet, made.id) == [("thread.create", "thread", {"visibility": "private"})]
    assert fleet.one("select count(*) from threads") == 2


async def test_title_and_visibility_are_changed_by_who_may_share(
    open_repository: OpenRepository, fleet: Fleet
) -> None:
    add_person(fleet)
    thread_id = add_thread(fleet)
    let_in(fleet, thread_id, OTHER, write=True)
    operator, writer = await open_repository(OPERATOR), await open_repository(OTHER)

    renamed = await operator.call(THREADS_UPDATE, ThreadChange(thread_id=thread_id, title="second try"))
    again = await operator.call(THREADS_UPDATE, ThreadChange(thread_id=thread_id, title="second try"))
    shared = await operator.call(THREADS_UPDATE, ThreadChange(thread_id=thread_id, visibility=Visibility.SHARED))
    with pytest.raises(Forbidden, match="who takes part"):
        await writer.call(THREADS_UPDATE, ThreadChange(thread_id=thread_id, title="mine"))

    assert (renamed.title, renamed.visibility, renamed.updated_by) == (
        "second try",
        Visibility.PRIVATE,
        "Ole Berg",
    )
    assert again == renamed
    assert (shared.title, shared.visibility) == ("second try", Visibility.SHARED)
    assert told(fleet, thread_id) == [
        ("thread.update", "thread", {"changed": "title", "visibility": "private"}),
        ("thread.update", "thread", {"changed": "visibility", "visibility": "shared"}),
    ]


@pytest.mark.rule("R002-133")
async def test_a_stranger_is_told_that_there_is_no_such_thread(
    open_repository: OpenRepository, fleet: Fleet
) -> None:
    add_person(fleet)
    fleet.add_team("other")
    thread_id, nowhere = add_thread(fleet), ThreadId.new()
    message_id, participant_id = say(fleet, thread_id), ParticipantId.new()
    asked: tuple[tuple[AnyOperation, dict[str, object]], ...] = (
        (THREADS_GET, {}),
        (THREADS_PARTICIPANTS, {}),
        (MESSAGES_LIST, {}),
        (MESSAGES_SEARCH, {"words": "morning"}),
        (MESSAGES_GET, {"message_id": message_id}),
        (MESSAGES_POST, {"content": "hello"}),
        (THREADS_UPDATE, {"title": "mine"}),
        (THREADS_ARCHIVE, {}),
        (THREADS_GRANT, {"user_id": fleet.user_id(VIEWER)}),
        (THREADS_REVOKE, {"participant_id": participant_id}),
    )
    stranger = await open_repository(OTHER)
    of_another_team = await open_repository("admin@other.example", "other")

    for operation, values in asked:
        said = []
        for one in (thread_id, nowhere):
            with pytest.raises(NotFound) as refused:
                await stranger.call(operation, operation.request.model_validate({"thread_id": one, **values}))
            said.append(str(refused.value).replace(str(one), ""))
        assert said[0] == said[1], operation.name
    with pytest.raises(NotFound):
        await of_another_team.call(THREADS_GET, ThreadAsked(thread_id=thread_id))

    assert await listed(stranger, archived="yes") == await listed(of_another_team, archived="yes") == []
    assert told(fleet, thread_id) == []


@pytest.mark.rule(
    "R002-22", "R002-27", "R002-28", "R002-29", "R002-30", "R002-31", "R002-129",
    "R002-134", "U002-1", "U002-7",
)  # fmt: skip
async def test_rights_are_given_changed_and_taken_and_count_at_once(
    open_repository: OpenRepository, fleet: Fleet
) -> None:
    mia = add_person(fleet)
    thread_id = add_thread(fleet)
    owner, other = await open_repository(OPERATOR), await open_repository(OTHER)
    hello = NewMessage(thread_id=thread_id, content="hello")

    reader = await owner.call(THREADS_GRANT, NewParticipant(thread_id=thread_id, user_id=mia))
    as_reader = await other.call(THREADS_GET, ThreadAsked(thread_id=thread_id))
    with pytest.raises(Forbidden, match="not write"):
        await other.call(MESSAGES_POST, hello)
    with pytest.raises(Forbidden, match="who takes part"):
        await other.call(THREADS_GRANT, NewParticipant(thread_id=thread_id, user_id=fleet.user_id(VIEWER)))
    change = ParticipantRights(thread_id=thread_id, participant_id=reader.id, can_write=True)
    writer = await owner.call(THREADS_CHANGE_RIGHTS, change)
    unchanged = await owner.call(THREADS_CHANGE_RIGHTS, change)
    await other.call(MESSAGES_POST, hello)
    gone = await owner.call(THREADS_REVOKE, ParticipantAsked(thread_id=thread_id, participant_id=reader.id))
    with pytest.raises(NotFound):
        await other.call(MESSAGES_LIST, MessageQuery(thread_id=thread_id))
    with pytest.raises(NotFound):
        await owner.call(THREADS_REVOKE, ParticipantAsked(thread_id=thread_id, participant_id=reader.id))

    assert (rights(reader), rights(writer)) == ((True, False, False), (True, True, False))
    assert (as_reader.can_write, as_reader.can_share) == (False, False)
    assert (unchanged, gone) == (writer, writer)
    assert (reader.created_by, reader.name) == ("Ole Berg", "Mia")
    who = {"user_id": str(mia), "agent_id": None}
    given = who | {"can_read": True, "can_write": False, "can_share": False}
    assert [row for row in told(fleet, thread_id) if row[1] == "participant"] == [
        ("thread.acl.grant", "participant", given),
        ("thread.acl.update", "participant", given | {"can_write": True}),
        ("thread.acl.revoke", "participant", who),
    ]


@pytest.mark.rule("R002-24", "R002-25", "R002-26", "R002-31", "R002-99", "R002-100")
async def test_who_can_not_take_part_is_refused(open_repository: OpenRepository, fleet: Fleet) -> None:
    mia = add_person(fleet)
    thread_id = add_thread(fleet)
    admin, owner = await open_repository(ADMIN), await open_repository(OPERATOR)
    vera, atlas, beacon = fleet.user_id(VIEWER), fleet.agent_id("atlas"), fleet.agent_id("beacon")
    system = UserId.of(UUID(str(fleet.one("select id from users where kind = 'system' limit 1"))))
    fleet.execute("update users set is_active = false where id = %s", mia)

    async def refused(kind: type[ConsoleError], **values: object) -> None:
        request = NewParticipant.model_validate({"thread_id": thread_id, **values})
        with pytest.raises(kind):
            await owner.call(THREADS_GRANT, request)

    agent = await owner.call(THREADS_GRANT, NewParticipant(thread_id=thread_id, agent_id=atlas, can_write=True))
    await owner.call(THREADS_GRANT, NewParticipant(thread_id=thread_id, user_id=vera))
    await refused(Conflict, user_id=vera, can_write=True)
    await refused(Conflict, agent_id=atlas)
    await refused(Invalid, user_id=fleet.user_id(ADMIN), can_read=False, can_write=True)
    await refused(Invalid, user_id=fleet.user_id(ADMIN), can_read=False, can_share=True)
    await refused(Invalid)
    await refused(Invalid, user_id=vera, agent_id=atlas)
    await refused(NotFound, user_id=UserId.new())
    await refused(NotFound, agent_id=AgentId.new())
    await refused(Conflict, user_id=mia)
    await refused(Conflict, user_id=system)
    await refused(Conflict, agent_id=fleet.agent_id("juniper"))
    await owner.call(THREADS_GRANT, NewParticipant(thread_id=thread_id, agent_id=beacon))
    await admin.call(AGENTS_DELETE, AgentAsked(agent_id=beacon))
    await refused(NotFound, agent_id=beacon)
    with pytest.raises(Invalid):
        await owner.call(
            THREADS_CHANGE_RIGHTS,
            ParticipantRights(thread_id=thread_id, participant_id=agent.id, can_read=False),
        )

    assert [who.name for who in await participants(owner, thread_id)] == ["Ole Berg", "atlas", "Vera Lind"]
    assert (agent.participant_type, agent.agent_id, agent.user_id) == (ParticipantType.AGENT, atlas, None)
    acts = [action for action, *_ in told(fleet, thread_id)]
    assert acts == ["thread.acl.grant"] * 3 + ["thread.acl.revoke"], "an agent that is deleted leaves its threads"


async def test_nobody_gives_what_they_do_not_have(open_repository: OpenRepository, fleet: Fleet) -> None:
    add_person(fleet)
    thread_id = add_thread(fleet)
    let_in(fleet, thread_id, OTHER, share=True)
    other, admin, vera = await open_repository(OTHER), await open_repository(ADMIN), fleet.user_id(VIEWER)

    with pytest.raises(Forbidden, match="right to write"):
        await other.call(THREADS_GRANT, NewParticipant(thread_id=thread_id, user_id=vera, can_write=True))
    reader = await other.call(THREADS_GRANT, NewParticipant(thread_id=thread_id, user_id=vera, can_share=True))
    more = ParticipantRights(thread_id=thread_id, participant_id=reader.id, can_write=True)
    with pytest.raises(Forbidden, match="right to write"):
        await other.call(THREADS_CHANGE_RIGHTS, more)
    by_admin = await admin.call(THREADS_CHANGE_RIGHTS, more)

    assert rights(by_admin) == (True, True, True)


async def test_the_last_person_who_may_share_stays_unless_an_administrator_says_so(
    open_repository: OpenRepository, fleet: Fleet
) -> None:
    add_person(fleet)
    thread_id = add_thread(fleet)
    # Rights that nobody can use: a viewer's, and those of somebody who is deactivated.
    let_in(fleet, thread_id, VIEWER, share=True)
    let_in(fleet, thread_id, OTHER, share=True)
    fleet.execute("update users set is_active = false where email = %s", OTHER)
    owner, admin = await open_repository(OPERATOR), await open_repository(ADMIN)
    ole = next(who for who in await participants(owner, thread_id) if who.name == "Ole Berg")
    less = ParticipantRights(thread_id=thread_id, participant_id=ole.id, can_share=False)

    with pytest.raises(Conflict, match="Nobody else"):
        await owner.call(THREADS_CHANGE_RIGHTS, less)
    with pytest.raises(Conflict, match="Nobody else"):
        await owner.call(THREADS_REVOKE, ParticipantAsked(thread_id=thread_id, participant_id=ole.id))
    by_admin = await admin.call(THREADS_CHANGE_RIGHTS, less)

    assert rights(by_admin) == (True, True, False)


async def test_everybody_is_listed_what_they_may_read_newest_first(
    open_repository: OpenRepository, fleet: Fleet
) -> None:
    add_person(fleet)
    private, shared, mias = add_thread(fleet), add_thread(fleet, visibility="shared"), add_thread(fleet, OTHER)
    both = add_thread(fleet, OTHER, visibility="shared")
    let_in(fleet, both, OPERATOR)
    muted = add_thread(fleet, OTHER)
    let_in(fleet, muted, OPERATOR, read=False)
    everything = [muted, both, mias, shared, private]
    repositories = {who: await open_repository(who) for who in (ADMIN, OPERATOR, VIEWER)}
    seen = {
        (who, which): await listed(repository, which=which)
        for who, repository in repositories.items()
        for which in WhichThreads
    }
    paged: list[ThreadId] = []
    after: str | None = None
    while True:
        page = await repositories[ADMIN].call(THREADS_LIST, ThreadQuery(limit=2, after=after))
        paged += [thread.id for thread in page.items]
        if (after := page.next) is None:
            break

    assert seen == {
        (ADMIN, WhichThreads.ALL): everything,
        (ADMIN, WhichThreads.MINE): [],
        (ADMIN, WhichThreads.SHARED): [both, shared],
        (OPERATOR, WhichThreads.ALL): [both, shared, private],
        (OPERATOR, WhichThreads.MINE): [both, shared, private],
        (OPERATOR, WhichThreads.SHARED): [both, shared],
        (VIEWER, WhichThreads.ALL): [both, shared],
        (VIEWER, WhichThreads.MINE): [],
        (VIEWER, WhichThreads.SHARED): [both, shared],
    }
    assert paged == everything


@pytest.mark.rule("R002-32")
async def test_an_agent_is_let_in_by_name_or_by_a_run_and_never_because_a_thread_is_shared(
    repository: Repository, fleet: Fleet
) -> None:
    taking_part, acting, over = (add_thread(fleet) for _ in range(3))
    shared = add_thread(fleet, visibility="shared")
    let_in(fleet, taking_part, "atlas")
    add_run(fleet, acting)
    add_run(fleet, over, ended=True)

    async with acting_agent(repository, fleet) as atlas:
        page = await atlas.call(THREADS_LIST, ThreadQuery())
        of_team = await listed(atlas, which=WhichThreads.SHARED)
        for unreadable in (over, shared):
            with pytest.raises(NotFound):
                await atlas.call(THREADS_GET, ThreadAsked(thread_id=unreadable))
        with pytest.raises(Forbidden):
            await atlas.call(THREADS_CREATE, NewThread())

    assert [(thread.id, thread.can_write, thread.can_share) for thread in page.items] == [
        (acting, True, False),
        (taking_part, False, False),
    ]
    assert of_team == []


@pytest.mark.rule("U002-4")
async def test_an_administrators_visit_is_written_down_once(open_repository: OpenRepository, fleet: Fleet) -> None:
    thread_id, own = add_thread(fleet), add_thread(fleet, ADMIN)
    message_id = say(fleet, thread_id)
    admin = await open_repository(ADMIN)

    await listed(admin)
    unvisited = told(fleet, thread_id)
    await admin.call(THREADS_GET, ThreadAsked(thread_id=thread_id))
    await admin.call(MESSAGES_LIST, MessageQuery(thread_id=thread_id))
    await admin.call(MESSAGES_SEARCH, MessageSearch(thread_id=thread_id, words="morning"))
    await admin.call(MESSAGES_GET, MessageAsked(thread_id=thread_id, message_id=message_id))
    await participants(admin, thread_id)
    await admin.call(THREADS_GET, ThreadAsked(thread_id=own))

    assert unvisited == []
    assert told(fleet, thread_id) == [("thread.access.admin_override", "thread", {})]
    assert told(fleet, own) == []
