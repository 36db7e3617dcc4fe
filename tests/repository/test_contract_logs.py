"""Logs that are followed row by row, through both repositories: nothing lost, nothing twice, nothing foreign."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

import pytest

from agent_console.domain.approvals import Rejecting
from agent_console.domain.errors import ConsoleError, Forbidden, NotFound
from agent_console.domain.ids import JobEventId, JobId, ThreadId
from agent_console.domain.messages import NewMessage
from agent_console.domain.states import ApprovalState
from agent_console.domain.threads import ParticipantAsked
from agent_console.repository.http.repository import HttpRepository
from agent_console.repository.logs import (
    APPROVALS_LOG,
    AUDIT_LOG,
    Followed,
    FollowsLogs,
    Log,
    Row,
    messages_of,
    story_of,
)
from agent_console.repository.operations.approvals import APPROVALS_REJECT
from agent_console.repository.operations.messages import MESSAGES_POST
from agent_console.repository.operations.threads import THREADS_REVOKE
from agent_console.repository.port import Repository
from agent_console.repository.postgres.live.log_reading import AT_ONCE
from agent_console.repository.postgres.repository import PostgresRepository
from tests.support.asking import ANA, VERA, Callers, add_route, asks, callers
from tests.support.conversations import OTHER, OWNER, add_person, add_thread, let_in, say, say_much
from tests.support.fleet import Fleet
from tests.support.serving import serving
from tests.support.trail import act

SOON = 60.0


@pytest.fixture(params=["direct", "http"])
async def everybody(request: pytest.FixtureRequest, fleet: Fleet) -> AsyncIterator[Callers]:
    async with callers(fleet, request.param) as everybody:
        yield everybody


@pytest.fixture
def looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_console.repository.postgres.live.standing.LOOK_AGAIN_SECONDS", 0.1)


def follow(
    repository: Repository, log: Log[Row], after: int | None = None
) -> "aclosing[AsyncGenerator[Followed[Row], None]]":
    assert isinstance(repository, PostgresRepository | HttpRepository)
    follows: FollowsLogs = repository
    return aclosing(follows.follow(log, after))


async def rows_of(followed: AsyncIterator[Followed[Row]], count: int) -> list[tuple[int, Row]]:
    """The next rows with their positions; where the log began is passed over."""
    rows: list[tuple[int, Row]] = []
    async with asyncio.timeout(SOON):
        while len(rows) < count:
            one = await anext(followed)
            rows += [] if one.row is None else [(one.position, one.row)]
    return rows


async def post(writer: Repository, thread_id: ThreadId, content: str) -> None:
    await writer.call(MESSAGES_POST, NewMessage(thread_id=thread_id, content=content))


def add_line(fleet: Fleet, job_id: JobId, message: str) -> None:
    """Without a word to anybody who listens."""
    fleet.execute(
        "insert into job_events (team_id, id, job_id, level, message) values (%s, %s, %s, 'info', %s)",
        *(fleet.team_id(), JobEventId.new(), job_id, message),
    )


def seal(fleet: Fleet) -> None:
    fleet.execute("select seal_audit(%s, 5000)", fleet.team_id())


@pytest.mark.rule("U001-8")
async def test_who_goes_on_after_what_was_seen_misses_nothing_and_sees_nothing_twice(
    everybody: Callers, fleet: Fleet
) -> None:
    thread_id, owner = add_thread(fleet), await everybody.person(OWNER)
    say_much(fleet, thread_id, AT_ONCE + 20)

    async with follow(owner, messages_of(thread_id), 0) as followed:
        seen = await rows_of(followed, AT_ONCE + 10)
    async with follow(owner, messages_of(thread_id), seen[-1][0]) as followed:
        seen += await rows_of(followed, 10)
        await post(owner, thread_id, "the last")
        seen += await rows_of(followed, 1)

    words = [message.content for _, message in seen]
    assert words == [*(f"line {n}" for n in range(1, AT_ONCE + 21)), "the last"]
    assert [position for position, _ in seen] == [message.seq for _, message in seen]


@pytest.mark.rule("U001-8")
async def test_without_a_position_only_what_comes_is_told(everybody: Callers, fleet: Fleet) -> None:
    thread_id, owner = add_thread(fleet), await everybody.person(OWNER)
    say(fleet, thread_id, content="long ago")

    async with follow(owner, messages_of(thread_id)) as followed:
        began = await anext(followed)
        await post(owner, thread_id, "now")
        ((position, message),) = await rows_of(followed, 1)

    assert began.row is None
    assert began.position == fleet.one("select min(seq) from messages")
    assert (position > began.position, message.content) == (True, "now")


@pytest.mark.usefixtures("looks_often")
async def test_a_line_that_nobody_told_of_is_found(everybody: Callers, fleet: Fleet) -> None:
    job_id, viewer = fleet.first_job("running"), await everybody.person(VERA)

    async with follow(viewer, story_of(job_id)) as followed:
        await anext(followed)
        seen = []
        for message in ("begun", "half done", "done"):
            add_line(fleet, job_id, message)
            seen += await rows_of(followed, 1)

    assert [event.message for _, event in seen] == ["begun", "half done", "done"]


@pytest.mark.rule("U002-22", "R002-133")
async def test_who_is_taken_out_of_a_thread_reads_no_further(everybody: Callers, fleet: Fleet) -> None:
    add_person(fleet)
    thread_id, owner, guest = (
        add_thread(fleet),
        await everybody.person(OWNER),
        await everybody.person(OTHER),
    )
    part = let_in(fleet, thread_id, OTHER)
    log = messages_of(thread_id)
    async with follow(owner, log) as owner_follows, follow(guest, log) as guest_follows:
        await anext(owner_follows)
        await anext(guest_follows)

        await owner.call(THREADS_REVOKE, ParticipantAsked(thread_id=thread_id, participant_id=part))
        await post(owner, thread_id, "between us")
        await rows_of(owner_follows, 1)

        with pytest.raises(NotFound):
            await rows_of(guest_follows, 1)


@pytest.mark.rule("U002-22", "R002-133")
async def test_what_may_not_be_read_can_not_be_followed(everybody: Callers, fleet: Fleet) -> None:
    foreign, agent = add_thread(fleet), await everybody.agent("atlas")
    viewer = await everybody.person(VERA)

    async def refusal(repository: Repository, log: Log[Row]) -> type[ConsoleError]:
        async with follow(repository, log, 0) as followed:
            with pytest.raises(ConsoleError) as refused:
                await anext(followed)
        return type(refused.value)

    assert await refusal(viewer, messages_of(foreign)) is NotFound
    assert await refusal(viewer, story_of(JobId.new())) is NotFound
    assert await refusal(agent, story_of(fleet.first_job("running"))) is Forbidden
    assert await refusal(agent, AUDIT_LOG) is Forbidden


@pytest.mark.rule("U002-22")
@pytest.mark.usefixtures("looks_often")
async def test_an_approval_is_told_when_it_is_asked_for_and_when_it_has_ended(
    everybody: Callers, fleet: Fleet
) -> None:
    thread_id = add_thread(fleet)
    for name in ("atlas", "beacon"):
        let_in(fleet, thread_id, name, write=True)
    add_route(fleet, "atlas", "beacon", "requires_human_approval")
    add_route(fleet, "beacon", "atlas", "requires_human_approval")
    atlas, beacon, ana = (
        await everybody.agent("atlas"),
        await everybody.agent("beacon"),
        await everybody.person(ANA),
    )
    async with (
        follow(atlas, APPROVALS_LOG) as its_own,
        follow(await everybody.person(OWNER), APPROVALS_LOG) as all_,
    ):
        await anext(its_own)
        await anext(all_)
        asked = (await asks(atlas, fleet, thread_id)).approval
        await asks(beacon, fleet, thread_id, "atlas")
        seal(fleet)
        first = [*await rows_of(its_own, 1), *await rows_of(all_, 2)]

        assert asked is not None
        no = Rejecting(approval_id=asked.id, digest_seen=asked.digest, reason="not today")
        await ana.call(APPROVALS_REJECT, no)
        seal(fleet)
        second = [*await rows_of(its_own, 1), *await rows_of(all_, 1)]

    assert [approval.from_agent for _, approval in first] == ["atlas", "atlas", "beacon"]
    assert {(approval.id, approval.state) for _, approval in second} == {(asked.id, ApprovalState.REJECTED)}


@pytest.mark.rule("U002-22")
@pytest.mark.usefixtures("looks_often")
async def test_the_trail_is_told_in_the_order_of_its_seals(everybody: Callers, fleet: Fleet) -> None:
    private, shared = add_thread(fleet), add_thread(fleet, visibility="shared")
    async with (
        follow(await everybody.person(ANA), AUDIT_LOG) as whole,
        follow(await everybody.person(VERA), AUDIT_LOG) as part,
    ):
        await anext(whole)
        await anext(part)
        acts = [act(fleet, thread_id=thread_id) for thread_id in (private, shared, None, shared)]
        seal(fleet)
        told, told_in_part = await rows_of(whole, 4), await rows_of(part, 2)

    assert [row.id for _, row in told] == acts
    assert [row.id for _, row in told_in_part] == [acts[1], acts[3]]


@pytest.mark.rule("U001-8")
async def test_a_restarted_server_loses_and_repeats_nothing(fleet: Fleet) -> None:
    thread_id = add_thread(fleet)
    async with serving(fleet.working) as url:
        owner = HttpRepository(url, fleet.token(OWNER))
        followed = owner.follow(messages_of(thread_id))
        await anext(followed)
        await post(owner, thread_id, "before")
        seen = await rows_of(followed, 1)
    say(fleet, thread_id, content="meanwhile")

    async with serving(fleet.working, port=int(url.rpartition(":")[2])):
        seen += await rows_of(followed, 1)
        await post(owner, thread_id, "after")
        seen += await rows_of(followed, 1)
    await followed.aclose()
    await owner.close()

    assert [message.content for _, message in seen] == ["before", "meanwhile", "after"]
