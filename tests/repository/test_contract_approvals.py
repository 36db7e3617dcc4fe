"""What waits for a person, through both repositories: who may decide, on what, and how it ends otherwise."""

import asyncio

import psycopg
import pytest

from agent_console.domain.agent_changes import AgentRevocation
from agent_console.domain.agents import AgentAsked
from agent_console.domain.approvals import (
    Approval,
    ApprovalAsked,
    ApprovalHistoryQuery,
    ApprovalQuery,
    Approving,
    Rejecting,
)
from agent_console.domain.delegation import digest_of
from agent_console.domain.errors import Conflict, ConsoleError, Forbidden, Invalid, NotFound, RateLimited
from agent_console.domain.ids import ApprovalId, ThreadId
from agent_console.domain.states import ApprovalState, RunStatus
from agent_console.domain.threads import ThreadAsked
from agent_console.repository.operations.agents import AGENTS_DELETE, AGENTS_REVOKE
from agent_console.repository.operations.approvals import (
    APPROVALS_APPROVE,
    APPROVALS_GET,
    APPROVALS_HISTORY,
    APPROVALS_LIST,
    APPROVALS_REJECT,
)
from agent_console.repository.operations.threads import THREADS_ARCHIVE
from agent_console.repository.port import Repository
from tests.support.asking import (
    ANA,
    OLE,
    VERA,
    Callers,
    add_route,
    asks,
    count,
    facts,
    set_policy,
    set_setting,
    started,
    trail,
)
from tests.support.conversations import add_thread, let_in
from tests.support.fleet import Fleet
from tests.support.locks import somebody_waits_for_a_lock

MADE = ("runs", "messages where author_type <> 'system'", "jobs where run_id is not null")
WORDS = "Delete the old builds. \u202e[/]"


@pytest.fixture
def thread_id(fleet: Fleet) -> ThreadId:
    """A thread that every person may read, in which atlas works; it may ask beacon if a person lets it."""
    thread_id = add_thread(fleet, ANA, visibility="shared")
    let_in(fleet, thread_id, "atlas", write=True)
    add_route(fleet, "atlas", "beacon", "requires_human_approval", version=5)
    return thread_id


async def waiting(crew: Callers, thread_id: ThreadId, words: str = WORDS) -> Approval:
    """A request of atlas that nobody has decided, as a person reads it."""
    made = await asks(await crew.agent("atlas"), crew.fleet, thread_id, words=words)
    assert made.approval is not None
    return await read(await crew.person(ANA), made.approval.id)


async def read(person: Repository, approval_id: ApprovalId) -> Approval:
    return await person.call(APPROVALS_GET, ApprovalAsked(approval_id=approval_id))


def yes(approval: Approval) -> Approving:
    return Approving(approval_id=approval.id, digest_seen=approval.digest)


def no(approval: Approval) -> Rejecting:
    return Rejecting(approval_id=approval.id, digest_seen=approval.digest, reason="not today")


async def decide(person: Repository, asked: Approving | Rejecting) -> Approval:
    if isinstance(asked, Approving):
        return await person.call(APPROVALS_APPROVE, asked)
    return await person.call(APPROVALS_REJECT, asked)


@pytest.mark.rule("R002-76")
async def test_an_approval_makes_exactly_the_run_that_was_read(
    crew: Callers, fleet: Fleet, thread_id: ThreadId
) -> None:
    asked = await waiting(crew, thread_id)
    ole, atlas = await crew.person(OLE), fleet.agent_id("atlas")

    decided = await ole.call(APPROVALS_APPROVE, yes(asked))

    assert (asked.state, asked.from_agent, asked.to_agent) == (ApprovalState.PENDING, "atlas", "beacon")
    assert digest_of(asked.envelope) == asked.digest
    assert asked.envelope["input"] == WORDS
    assert (decided.state, decided.decided_by) == (ApprovalState.APPROVED, "Ole Berg")
    made = fleet.execute(
        "select r.id, r.status, r.requested_by_agent_id, r.delegation_path, r.trace_id, r.route_version,"
        " m.content, m.author_agent_id, j.status from runs r join messages m on m.id = r.input_message_id"
        " join jobs j on j.run_id = r.id"
    )
    assert made == [
        (decided.run_id, RunStatus.QUEUED, atlas, [str(atlas)], asked.trace_id, 5, WORDS, atlas, "queued")
    ]
    assert trail(fleet)[1:] == [
        ("message.create", "atlas", None),
        ("run.create", "Ole Berg", None),
        ("approval.approve", "Ole Berg", "allow"),
        ("message.create", "agent-console", None),
    ]
    assert facts(fleet, "approval.approve") == [
        {
            "from_agent_id": str(atlas),
            "to_agent_id": str(fleet.agent_id("beacon")),
            "digest": asked.digest,
            "policy_version": 5,
        }
    ]
    assert fleet.one("select count(*) from audit_log a where a::text like '%%builds%%'") == 0


@pytest.mark.rule("U002-27")
async def test_a_rejection_says_why_and_makes_nothing(crew: Callers, fleet: Fleet, thread_id: ThreadId) -> None:
    asked, ole, ana = await waiting(crew, thread_id), await crew.person(OLE), await crew.person(ANA)

    decided = await ole.call(APPROVALS_REJECT, no(asked))

    assert (decided.state, decided.decision_reason, decided.run_id) == (ApprovalState.REJECTED, "not today", None)
    assert count(fleet, *MADE) == [0, 0, 0]
    said = fleet.execute("select content, payload ->> 'approval_id' from messages where author_type = 'system'")
    assert said == [("Ole Berg rejected what atlas asked of beacon.", str(asked.id))]
    assert trail(fleet, "approval.%") == [("approval.reject", "Ole Berg", "block")]
    for request in (yes(asked), no(asked)):
        with pytest.raises(Conflict, match="Ole Berg rejected it at 20") as late:
            await decide(ana, request)
        assert late.value.details["decided_by"] == "Ole Berg"
        assert late.value.details["state"] == "rejected"
    assert await read(ana, asked.id) == decided
    assert len(trail(fleet, "approval.%")) == 1


async def test_only_what_was_read_is_decided(crew: Callers, fleet: Fleet, thread_id: ThreadId) -> None:
    """A digest of another request, and words that were swapped under the reader's eyes."""
    asked, ole = await waiting(crew, thread_id), await crew.person(OLE)
    other = await waiting(crew, thread_id, "something harmless")

    for request in (yes(asked), no(asked)):
        with pytest.raises(Conflict, match="not what this approval is about"):
            await decide(ole, request.model_copy(update={"digest_seen": other.digest}))
    fleet.execute(
        "update approvals set envelope = jsonb_set(envelope, '{input}', '\"worse\"') where id = %s", asked.id
    )
    with pytest.raises(Conflict, match="was changed"):
        await ole.call(APPROVALS_APPROVE, yes(asked))

    assert (await read(ole, asked.id)).state is ApprovalState.PENDING
    assert count(fleet, *MADE) == [0, 0, 0]
    assert [row["rule"] for row in facts(fleet, "approval.refused")] == ["digest", "digest", "envelope"]


async def test_who_began_it_does_not_decide_it(crew: Callers, fleet: Fleet, thread_id: ThreadId) -> None:
    """Not even an administrator, and however many agents stand between."""
    ana, ole = await crew.person(ANA), await crew.person(OLE)
    add_route(fleet, "cartographer", "atlas")
    await started(ana, fleet, thread_id, "cartographer")
    await asks(await crew.agent("cartographer"), fleet, thread_id, "atlas")
    asked = await waiting(crew, thread_id)

    for request in (yes(asked), no(asked)):
        with pytest.raises(Forbidden, match="began this yourself"):
            await decide(ana, request)

    assert (asked.begun_by, asked.begun_by_user_id) == ("Ana Costa", fleet.user_id(ANA))
    assert [row["rule"] for row in facts(fleet, "approval.refused")] == ["four_eyes"] * 2
    approved = await ole.call(APPROVALS_APPROVE, yes(asked))
    assert approved.state is ApprovalState.APPROVED
    behind = "select requested_by_user_id from jobs where run_id = %s"
    assert fleet.one(behind, approved.run_id) == fleet.user_id(ANA)


async def test_neither_viewers_nor_agents_nor_strangers_decide(
    crew: Callers, fleet: Fleet, thread_id: ThreadId
) -> None:
    asked = await waiting(crew, thread_id)
    hidden = add_thread(fleet, ANA)
    let_in(fleet, hidden, "atlas", write=True)
    unseen = await waiting(crew, hidden)
    vera, ole = await crew.person(VERA), await crew.person(OLE)

    for caller in (vera, await crew.agent("atlas"), await crew.agent("beacon")):
        for request in (yes(asked), no(asked)):
            with pytest.raises(Forbidden, match="decide_approvals"):
                await decide(caller, request)
    for request in (yes(unseen), yes(unseen).model_copy(update={"approval_id": ApprovalId.new()})):
        with pytest.raises(NotFound, match=f"no approval {request.approval_id} that you may read"):
            await ole.call(APPROVALS_APPROVE, request)

    assert fleet.execute("select distinct state from approvals") == [("pending",)]


async def test_who_is_demoted_while_deciding_does_not_slip_through(
    crew: Callers, fleet: Fleet, thread_id: ThreadId
) -> None:
    asked, ole = await waiting(crew, thread_id), await crew.person(OLE)
    await read(ole, asked.id)

    async with await psycopg.AsyncConnection.connect(fleet.administration) as administrator:
        await administrator.execute("update users set role = 'viewer' where email = %s", (OLE,))
        deciding = asyncio.create_task(ole.call(APPROVALS_APPROVE, yes(asked)))
        await somebody_waits_for_a_lock(fleet, task=deciding)
        await administrator.commit()

    with pytest.raises(Forbidden, match="decide_approvals"):
        await deciding
    assert fleet.one("select state from approvals") == "pending"


async def test_what_expires_while_it_is_decided_has_expired(
    crew: Callers, fleet: Fleet, thread_id: ThreadId
) -> None:
    """The database's clock is read after the wait for the row, not when the decision was sent."""
    asked, ole = await waiting(crew, thread_id), await crew.person(OLE)

    async with await psycopg.AsyncConnection.connect(fleet.administration) as somebody:
        await somebody.execute("select from approvals for update")
        deciding = asyncio.create_task(ole.call(APPROVALS_APPROVE, yes(asked)))
        await somebody_waits_for_a_lock(fleet, task=deciding)
        await somebody.execute("update approvals set expires_at = clock_timestamp()")
        await somebody.commit()

    with pytest.raises(Conflict, match="It is expired since"):
        await deciding
    ended = await read(ole, asked.id)
    assert (ended.state, ended.decided_by) == (ApprovalState.EXPIRED, None)
    assert trail(fleet, "approval.%") == [("approval.expire", "agent-console", "block")]
    assert count(fleet, *MADE) == [0, 0, 0]


@pytest.mark.parametrize("policy", ["blocked", None])
async def test_a_route_that_was_closed_beats_an_old_request(
    crew: Callers, fleet: Fleet, thread_id: ThreadId, policy: str | None
) -> None:
    asked, ole = await waiting(crew, thread_id), await crew.person(OLE)
    if policy is None:
        fleet.execute("delete from a2a_routes")
    else:
        set_policy(fleet, "atlas", "beacon", policy)

    with pytest.raises(Conflict, match="superseded"):
        await ole.call(APPROVALS_APPROVE, yes(asked))

    assert (await read(ole, asked.id)).state is ApprovalState.SUPERSEDED
    assert trail(fleet, "approval.%") == [("approval.supersede", "agent-console", "block")]
    assert count(fleet, *MADE) == [0, 0, 0]


async def test_a_route_that_was_opened_does_not_stand_in_the_way(
    crew: Callers, fleet: Fleet, thread_id: ThreadId
) -> None:
    asked, ole = await waiting(crew, thread_id), await crew.person(OLE)
    set_policy(fleet, "atlas", "beacon", "allowed")

    await ole.call(APPROVALS_APPROVE, yes(asked))

    assert fleet.execute("select route_version from runs") == [(6,)]
    assert facts(fleet, "approval.approve")[0]["policy_version"] == 6


@pytest.mark.parametrize("how", ["archived", "revoked", "deleted", "target deleted"])
async def test_a_request_is_withdrawn_when_nobody_is_left_to_want_it(
    crew: Callers, fleet: Fleet, thread_id: ThreadId, how: str
) -> None:
    asked, ana = await waiting(crew, thread_id), await crew.person(ANA)
    atlas, beacon = fleet.agent_id("atlas"), fleet.agent_id("beacon")
    fleet.execute("update agent_runtime set lifecycle = 6 where lifecycle is not null")

    match how:
        case "archived":
            await ana.call(THREADS_ARCHIVE, ThreadAsked(thread_id=thread_id))
        case "revoked":
            await ana.call(AGENTS_REVOKE, AgentRevocation(agent_id=atlas, reason="key in a log"))
        case "deleted":
            await ana.call(AGENTS_DELETE, AgentAsked(agent_id=atlas))
        case _:
            await ana.call(AGENTS_DELETE, AgentAsked(agent_id=beacon))

    ended = await read(ana, asked.id)
    assert (ended.state, ended.decided_by) == (ApprovalState.WITHDRAWN, None)
    assert trail(fleet, "approval.%") == [("approval.withdraw", "Ana Costa", "block")]
    with pytest.raises(Conflict, match="withdrawn"):
        await ana.call(APPROVALS_APPROVE, yes(asked))


@pytest.mark.rule("U002-14")
async def test_an_approval_opens_no_more_runs_than_a_thread_may_have(
    crew: Callers, fleet: Fleet, thread_id: ThreadId
) -> None:
    asked, ole = await waiting(crew, thread_id), await crew.person(OLE)
    set_setting(fleet, "runs_per_thread", 1)
    await started(await crew.person(ANA), fleet, thread_id, "dispatch")

    with pytest.raises(RateLimited, match="1 may be open"):
        await ole.call(APPROVALS_APPROVE, yes(asked))

    assert (await read(ole, asked.id)).state is ApprovalState.PENDING
    assert trail(fleet, "run.policy%") == [("run.policy.blocked", "Ole Berg", "block")]
    assert count(fleet, *MADE) == [1, 0, 1]


async def test_a_decision_that_can_not_be_written_down_is_not_made(
    crew: Callers, fleet: Fleet, thread_id: ThreadId
) -> None:
    """The last thing that is written fails: what came before is not there either."""
    asked, ole = await waiting(crew, thread_id), await crew.person(OLE)
    fleet.execute(
        "create function unwritable() returns trigger language plpgsql as"
        " $$ begin raise exception 'disk full'; end $$"
    )
    fleet.execute(
        "create trigger unwritable before insert on audit_log for each row"
        " when (new.action = 'approval.approve') execute function unwritable()"
    )

    with pytest.raises(ConsoleError):
        await ole.call(APPROVALS_APPROVE, yes(asked))

    assert (await read(ole, asked.id)).state is ApprovalState.PENDING
    assert count(fleet, *MADE) == [0, 0, 0]


async def test_what_waits_is_listed_by_expiry_and_what_was_decided_by_its_time(
    crew: Callers, fleet: Fleet, thread_id: ThreadId
) -> None:
    hidden = add_thread(fleet, ANA)
    for name in ("atlas", "cartographer"):
        let_in(fleet, hidden, name, write=True)
    add_route(fleet, "cartographer", "beacon", "requires_human_approval")
    ana, ole = await crew.person(ANA), await crew.person(OLE)
    asked = [(await waiting(crew, thread_id, f"part {number}")).id for number in range(5)]
    secret = (await waiting(crew, hidden)).id
    others = await asks(await crew.agent("cartographer"), fleet, hidden)
    assert others.approval is not None
    fleet.execute("update approvals set expires_at = now() + interval '1 minute' where id = %s", asked[3])
    fleet.execute("update approvals set expires_at = now() where id = %s", asked[4])

    async def listed(person: Repository, **query: object) -> list[ApprovalId]:
        found, after = [], None
        for _ in range(20):
            page = await person.call(
                APPROVALS_LIST, ApprovalQuery.model_validate({"limit": 2, "after": after} | query)
            )
            found += [approval.id for approval in page.items]
            if (after := page.next) is None:
                return found
        raise AssertionError("the list has no end")

    assert await listed(ole) == [asked[3], *asked[:3]]
    assert await listed(ana) == [asked[3], *asked[:3], secret, others.approval.id]
    assert await listed(ana, thread_id=hidden) == [secret, others.approval.id]
    assert await listed(ana, from_agent_id=fleet.agent_id("cartographer")) == [others.approval.id]
    assert await listed(await crew.agent("atlas")) == [asked[3], *asked[:3], secret]
    assert (await read(ole, asked[4])).state is ApprovalState.EXPIRED
    with pytest.raises(NotFound):
        await (await crew.agent("atlas")).call(APPROVALS_GET, ApprovalAsked(approval_id=others.approval.id))
    with pytest.raises(NotFound):
        await read(ole, secret)
    with pytest.raises(NotFound):
        await listed(ole, thread_id=hidden)

    for approval_id, request in ((asked[0], yes), (asked[2], no), (asked[1], no)):
        await decide(ole, request(await read(ole, approval_id)))
    first = await ole.call(APPROVALS_HISTORY, ApprovalHistoryQuery(limit=2))
    rest = await ole.call(APPROVALS_HISTORY, ApprovalHistoryQuery(limit=2, after=first.next))
    decided = [one.id for one in (*first.items, *rest.items) if one.state is not ApprovalState.EXPIRED]
    assert decided == [asked[1], asked[2], asked[0]]
    assert await listed(ole, state="rejected") == [asked[1], asked[2]]
    assert await listed(ole) == [asked[3]]
    for wrong in ("x", "2026-01-01T00:00:00/apr_x", f"2026-01-01T00:00:00/{asked[0]}"):
        with pytest.raises(Invalid):
            await listed(ole, after=wrong)
