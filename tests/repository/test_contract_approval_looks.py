"""Who else reads a request just now, and what a list and a reader are told of it, through both repositories."""

from collections.abc import Sequence

import pytest

from agent_console.domain.approvals import ApprovalAsked, ApprovalHistoryQuery, ApprovalQuery, Looker, Looking
from agent_console.domain.errors import Forbidden, NotFound
from agent_console.domain.ids import ApprovalId, ThreadId
from agent_console.repository.operations.approvals import (
    APPROVALS_GET,
    APPROVALS_HISTORY,
    APPROVALS_LIST,
    APPROVALS_LOOK,
    APPROVALS_LOOKERS,
)
from agent_console.repository.port import Repository
from tests.support.asking import ANA, OLE, VERA, Callers, add_route, asks
from tests.support.conversations import add_thread, let_in
from tests.support.fleet import Fleet

ONE, OTHER = "c0ffee", "decaf"
WORDS = "Delete the old builds.\nAll of them."


@pytest.fixture
def thread_id(fleet: Fleet) -> ThreadId:
    """A thread that every person may read, in which atlas asks beacon for what a person has to allow."""
    thread_id = add_thread(fleet, ANA, title="old builds", visibility="shared")
    let_in(fleet, thread_id, "atlas", write=True)
    add_route(fleet, "atlas", "beacon", "requires_human_approval")
    return thread_id


async def waiting(crew: Callers, thread_id: ThreadId) -> ApprovalId:
    made = await asks(await crew.agent("atlas"), crew.fleet, thread_id, words=WORDS)
    assert made.approval is not None
    return made.approval.id


async def looks(person: Repository, approval_id: ApprovalId, session: str = ONE) -> Sequence[Looker]:
    return (await person.call(APPROVALS_LOOK, Looking(approval_id=approval_id, session=session))).items


def pass_seconds(fleet: Fleet, seconds: int) -> None:
    """So many seconds go by, as far as those who look can tell."""
    earlier = "begun_at = begun_at - %s * interval '1 second', seen_at = seen_at - %s * interval '1 second'"
    fleet.execute(f"update approval_looks set {earlier}", seconds, seconds)


async def test_whoever_looks_hears_of_the_others(crew: Callers, fleet: Fleet, thread_id: ThreadId) -> None:
    asked, ana, ole = await waiting(crew, thread_id), await crew.person(ANA), await crew.person(OLE)

    alone = await looks(ana, asked)
    pass_seconds(fleet, 7)
    second = await looks(ole, asked)
    first = await looks(ana, asked)
    elsewhere = await looks(ana, asked, OTHER)

    assert alone == ()
    assert [looker.name for looker in second] == ["Ana Costa"]
    assert [looker.name for looker in first] == ["Ole Berg"]
    assert {looker.name for looker in elsewhere} == {"Ana Costa", "Ole Berg"}
    assert (second[0].seen_at - second[0].since).total_seconds() == 0
    everybody = await (await crew.person(VERA)).call(APPROVALS_LOOKERS, ApprovalAsked(approval_id=asked))
    assert [looker.name for looker in everybody.items].count("Ana Costa") == 2
    assert fleet.one("select count(*) from audit_log where resource_id = %s", str(asked)) == 1


async def test_who_has_gone_counts_no_more_and_is_cleared_away(
    crew: Callers, fleet: Fleet, thread_id: ThreadId
) -> None:
    asked, ana, ole = await waiting(crew, thread_id), await crew.person(ANA), await crew.person(OLE)
    await looks(ole, asked)

    pass_seconds(fleet, 30)
    after_a_while = await looks(ana, asked)
    kept = fleet.one("select count(*) from approval_looks")
    pass_seconds(fleet, 100)
    await looks(ana, asked, OTHER)

    assert after_a_while == ()
    assert kept == 2
    assert fleet.execute("select session from approval_looks") == [(OTHER,)]


async def test_who_comes_back_looks_anew(crew: Callers, fleet: Fleet, thread_id: ThreadId) -> None:
    asked, ana, ole = await waiting(crew, thread_id), await crew.person(ANA), await crew.person(OLE)
    await looks(ole, asked)
    pass_seconds(fleet, 10)
    await looks(ole, asked)
    (stayed,) = await looks(ana, asked)

    pass_seconds(fleet, 40)
    await looks(ole, asked)
    (came_back,) = await looks(ana, asked)

    assert (stayed.seen_at - stayed.since).total_seconds() >= 10
    assert came_back.seen_at == came_back.since


async def test_looking_is_for_those_who_decide_what_they_may_read(
    crew: Callers, fleet: Fleet, thread_id: ThreadId
) -> None:
    asked = await waiting(crew, thread_id)

    with pytest.raises(Forbidden):
        await looks(await crew.person(VERA), asked)
    with pytest.raises(Forbidden):
        await looks(await crew.agent("atlas"), asked)
    with pytest.raises(Forbidden):
        await (await crew.agent("atlas")).call(APPROVALS_LOOKERS, ApprovalAsked(approval_id=asked))
    fleet.execute("update threads set visibility = 'private'")
    with pytest.raises(NotFound):
        await looks(await crew.person(OLE), asked)

    assert fleet.one("select count(*) from approval_looks") == 0


async def test_a_list_tells_how_a_request_begins_and_a_reader_what_it_is_part_of(
    crew: Callers, fleet: Fleet, thread_id: ThreadId
) -> None:
    asked, ana = await waiting(crew, thread_id), await crew.person(ANA)

    (listed,) = (await ana.call(APPROVALS_LIST, ApprovalQuery())).items
    whole = await ana.call(APPROVALS_GET, ApprovalAsked(approval_id=asked))
    fleet.execute("update approvals set state = 'expired', decided_at = now()")
    (ended,) = (await ana.call(APPROVALS_HISTORY, ApprovalHistoryQuery())).items

    assert listed.begins == ended.begins == whole.begins == WORDS
    assert (whole.path, whole.max_hops, whole.thread) == (("atlas",), 2, "old builds")
