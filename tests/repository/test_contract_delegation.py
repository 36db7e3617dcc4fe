"""Agents that ask agents, through both repositories: what is decided, what is done, what is written down."""

import asyncio

import pytest

from agent_console.domain.approvals import Approving
from agent_console.domain.delegation import Delegation, DelegationAsked, DelegationState
from agent_console.domain.errors import Conflict, ConsoleError, Forbidden, Invalid, NotFound, RateLimited
from agent_console.domain.ids import RunId, ThreadId
from agent_console.domain.runs import RunAsked, RunCancelling
from agent_console.domain.working import Claim, JobDone
from agent_console.repository.operations.approvals import APPROVALS_APPROVE
from agent_console.repository.operations.runs import RUNS_CANCEL, RUNS_DELEGATE, RUNS_GET, RUNS_OUTCOME
from agent_console.repository.operations.working import CLAIMS_TAKE, JOBS_COMPLETE
from agent_console.repository.port import Repository
from tests.support.asking import (
    ANA,
    OLE,
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
from tests.support.conversations import add_run, add_thread, let_in
from tests.support.fleet import Fleet

MARKER = "zebra-7 \u202e[/] marker"
MADE = ("runs", "approvals", "messages", "jobs where run_id is not null")


async def refused(
    kind: type[ConsoleError], agent: Repository, fleet: Fleet, thread_id: ThreadId, to: str = "beacon"
) -> ConsoleError:
    """The refusal, which made nothing at all."""
    before = count(fleet, *MADE)
    with pytest.raises(kind) as refusal:
        await asks(agent, fleet, thread_id, to, MARKER)
    assert count(fleet, *MADE) == before
    assert MARKER not in str(refusal.value)
    return refusal.value


@pytest.mark.rule(
    "R002-57", "R002-58", "R002-59", "R002-77", "R002-132", "U002-9", "U002-11", "U002-12", "R002-43", "R002-79"
)
async def test_a_chain_grows_on_a_path_that_the_server_keeps(crew: Callers, fleet: Fleet) -> None:
    """A asks B asks C: each run knows who passed it on. C may ask nobody: not A again, and nobody else."""
    thread_id, ole = add_thread(fleet), await crew.person(OLE)
    atlas, beacon, carto = [await crew.agent(name) for name in ("atlas", "beacon", "cartographer")]
    a, b = fleet.agent_id("atlas"), fleet.agent_id("beacon")
    add_route(fleet, "atlas", "beacon", version=4)
    add_route(fleet, "beacon", "cartographer")
    add_route(fleet, "cartographer", "atlas")
    add_route(fleet, "cartographer", "dispatch")
    root = await started(ole, fleet, thread_id)

    first = await asks(atlas, fleet, thread_id, "beacon", MARKER)
    second = await asks(beacon, fleet, thread_id, "cartographer", MARKER)
    again = await refused(Forbidden, carto, fleet, thread_id, "atlas")
    further = await refused(Forbidden, carto, fleet, thread_id, "dispatch")

    assert first.run is not None
    assert second.run is not None
    assert (first.state, first.approval, first.repeated) == (DelegationState.ALLOWED, None, False)
    assert (first.run.requested_by, first.run.parent_run_id, first.run.route_version) == ("atlas", root.id, 4)
    assert (root.delegation_path, first.run.delegation_path, second.run.delegation_path) == ((), (a,), (a, b))
    assert root.trace_id == first.run.trace_id == second.run.trace_id
    assert [again.details["rule"], further.details["rule"]] == ["path", "hops"]
    said = "select author_agent_id, content, run_id from messages where id = %s"
    assert fleet.execute(said, first.run.input_message_id) == [(a, MARKER, root.id)]
    payload = fleet.one("select payload from jobs where id = %s", second.run.job_id)
    assert isinstance(payload, dict)
    assert payload["delegation_path"] == [str(a), str(b)]
    assert trail(fleet, "a2a.%") == [
        ("a2a.delegate.allowed", "atlas", "allow"),
        ("a2a.delegate.allowed", "beacon", "allow"),
        ("a2a.delegate.blocked", "cartographer", "block"),
        ("a2a.delegate.blocked", "cartographer", "block"),
    ]
    assert facts(fleet, "a2a.delegate.allowed")[0] == {
        "from_agent_id": str(a),
        "to_agent_id": str(b),
        "rule": "route",
        "policy_version": 4,
        "parent_run_id": str(root.id),
        "trace_id": str(root.trace_id),
    }
    assert len(trail(fleet, "message.create")) == len(trail(fleet, "run.create")) - 1 == 2
    told = {"recipients": 1, "broadcast": False, "intervention": False}
    assert facts(fleet, "message.create") == [told, told]
    assert fleet.one("select count(*) from audit_log a where a::text like '%%zebra%%'") == 0


@pytest.mark.rule("R002-74", "R002-75", "U002-9", "U002-31")
async def test_without_an_open_route_nothing_passes(crew: Callers, fleet: Fleet) -> None:
    thread_id, atlas = add_thread(fleet), await crew.agent("atlas")
    let_in(fleet, thread_id, "atlas", write=True)

    none = await refused(Forbidden, atlas, fleet, thread_id)
    add_route(fleet, "atlas", "beacon", "blocked", version=3)
    blocked = await refused(Forbidden, atlas, fleet, thread_id)
    other_way = await refused(Forbidden, atlas, fleet, thread_id, "cartographer")

    assert [error.details for error in (none, blocked, other_way)] == [
        {"rule": "no_route", "policy_version": None},
        {"rule": "route", "policy_version": 3},
        {"rule": "no_route", "policy_version": None},
    ]
    told = [(row["rule"], row["policy_version"]) for row in facts(fleet, "a2a.delegate.blocked")]
    assert told == [("no_route", None), ("route", 3), ("no_route", None)]


@pytest.mark.rule("R002-76", "R002-132", "U002-9")
async def test_a_route_that_asks_for_a_person_makes_an_approval_and_nothing_else(
    crew: Callers, fleet: Fleet
) -> None:
    thread_id, atlas = add_thread(fleet), await crew.agent("atlas")
    let_in(fleet, thread_id, "atlas", write=True)
    add_route(fleet, "atlas", "beacon", "requires_human_approval", version=2)

    asked = await asks(atlas, fleet, thread_id)

    assert (asked.state, asked.run, asked.mark) == (DelegationState.WAITING, None, "waiting")
    assert asked.approval is not None
    assert count(fleet, *MADE) == [0, 1, 0, 0]
    assert trail(fleet, "a2a.%") == [("a2a.delegate.request", "atlas", None)]
    assert facts(fleet, "a2a.delegate.request")[0]["digest"] == asked.approval.digest
    lasts = "select expires_at - created_at = interval '24 hours', route_version from approvals"
    assert fleet.execute(lasts) == [(True, 2)]


@pytest.mark.rule("U002-13")
async def test_the_same_again_within_the_window_gets_the_first_answer(crew: Callers, fleet: Fleet) -> None:
    thread_id, atlas = add_thread(fleet), await crew.agent("atlas")
    let_in(fleet, thread_id, "atlas", write=True)
    add_route(fleet, "atlas", "beacon")
    add_route(fleet, "atlas", "cartographer", "requires_human_approval")

    first = await asks(atlas, fleet, thread_id)
    asked = await asks(atlas, fleet, thread_id, "cartographer")
    set_policy(fleet, "atlas", "beacon", "blocked")
    again = await asks(atlas, fleet, thread_id, key="another key")
    asked_again = await asks(atlas, fleet, thread_id, "cartographer")

    assert again == first.model_copy(update={"repeated": True})
    assert asked_again == asked.model_copy(update={"repeated": True})
    assert trail(fleet, "a2a.%")[2:] == [("a2a.delegate.rate_limited", "atlas", "block")] * 2
    assert facts(fleet, "a2a.delegate.rate_limited")[0]["rule"] == "duplicate"
    fleet.execute("update runs set created_at = created_at - interval '50 seconds'")
    await refused(Forbidden, atlas, fleet, thread_id)
    assert (await refused(Forbidden, atlas, fleet, thread_id)).details["rule"] == "route"


@pytest.mark.rule("R002-132", "U002-14", "U002-15", "U002-9")
async def test_an_agent_opens_no_more_runs_than_a_thread_may_have(crew: Callers, fleet: Fleet) -> None:
    """Also when all come at once: they are counted one after the other."""
    thread_id, atlas = add_thread(fleet), await crew.agent("atlas")
    let_in(fleet, thread_id, "atlas", write=True)
    add_route(fleet, "atlas", "beacon")

    answers = await asyncio.gather(
        *(asks(atlas, fleet, thread_id, words=f"part {number}") for number in range(8)), return_exceptions=True
    )

    allowed = [answer for answer in answers if isinstance(answer, Delegation)]
    limited = [answer for answer in answers if isinstance(answer, RateLimited)]
    assert (len(allowed), len(limited)) == (3, 5)
    assert limited[0].details["rule"] == "runs_per_thread"
    assert count(fleet, *MADE) == [3, 0, 3, 3]
    assert len(trail(fleet, "a2a.delegate.rate_limited")) == 5


async def test_the_same_request_many_times_at_once_is_one(crew: Callers, fleet: Fleet) -> None:
    thread_id, atlas = add_thread(fleet), await crew.agent("atlas")
    let_in(fleet, thread_id, "atlas", write=True)
    add_route(fleet, "atlas", "beacon")

    answers = await asyncio.gather(*(asks(atlas, fleet, thread_id) for _ in range(8)))

    assert len({answer.run.id for answer in answers if answer.run is not None}) == 1
    assert sorted(answer.repeated for answer in answers) == [False] + [True] * 7
    assert count(fleet, *MADE) == [1, 0, 1, 1]


@pytest.mark.rule("R002-66")
async def test_a_key_gives_the_first_answer_and_is_no_key_to_anything_else(crew: Callers, fleet: Fleet) -> None:
    thread_id, atlas, beacon = add_thread(fleet), await crew.agent("atlas"), await crew.agent("beacon")
    for name in ("atlas", "beacon"):
        let_in(fleet, thread_id, name, write=True)
        add_route(fleet, name, "cartographer", "requires_human_approval" if name == "beacon" else "allowed")
    set_setting(fleet, "duplicate_window_seconds", 0)

    run = await asks(atlas, fleet, thread_id, "cartographer", key="k1")
    approval = await asks(beacon, fleet, thread_id, "cartographer", key="k2")

    assert (await asks(atlas, fleet, thread_id, "cartographer", key="k1")).run == run.run
    assert (await asks(beacon, fleet, thread_id, "cartographer", key="k2")).approval == approval.approval
    assert count(fleet, *MADE) == [1, 1, 1, 1]
    assert len(trail(fleet, "a2a.%")) == 2
    for agent, words, key in (
        (atlas, "other words", "k1"),
        (beacon, "other words", "k2"),
        (beacon, "Count the files.", "k1"),
        (atlas, "Count the files.", "k2"),
    ):
        with pytest.raises(Conflict, match="idempotency key"):
            await asks(agent, fleet, thread_id, "cartographer", words, key=key)


async def test_a_path_can_be_neither_forged_nor_laundered(crew: Callers, fleet: Fleet) -> None:
    """Only an unfinished run of the agent itself is a parent; who names none is given the one it works on."""
    thread_id, elsewhere = add_thread(fleet), add_thread(fleet)
    ole, atlas = await crew.person(OLE), await crew.agent("atlas")
    add_route(fleet, "atlas", "beacon")
    let_in(fleet, elsewhere, "atlas", write=True)
    let_in(fleet, thread_id, "atlas", write=True)
    theirs = await started(ole, fleet, elsewhere, "cartographer")
    over = await started(ole, fleet, elsewhere)
    await ole.call(RUNS_CANCEL, RunCancelling(run_id=over.id))

    forged = []
    for parent in (theirs.id, over.id, RunId.new()):
        with pytest.raises(NotFound) as refusal:
            await asks(atlas, fleet, thread_id, parent=parent)
        forged.append((refusal.value.message, refusal.value.details["rule"]))
    free = (await asks(atlas, fleet, thread_id, words="of its own")).run
    here = await started(ole, fleet, thread_id)
    newer = await started(ole, fleet, elsewhere)
    same_thread = (await asks(atlas, fleet, thread_id, words="here")).run
    named = (await asks(atlas, fleet, elsewhere, words="there", parent=here.id)).run
    await ole.call(RUNS_CANCEL, RunCancelling(run_id=here.id))
    laundered = add_thread(fleet)
    let_in(fleet, laundered, "atlas", write=True)
    newest = (await asks(atlas, fleet, laundered, words="far away")).run

    assert len(set(forged)) == 1
    assert forged[0][1] == "parent"
    assert free is not None
    assert (free.parent_run_id, free.delegation_path) == (None, (fleet.agent_id("atlas"),))
    assert same_thread is not None
    assert named is not None
    assert newest is not None
    assert [run.parent_run_id for run in (same_thread, named, newest)] == [here.id, here.id, newer.id]
    assert newest.trace_id == newer.trace_id


@pytest.mark.rule("R002-133", "R002-134")
async def test_who_may_not_write_to_a_thread_delegates_nothing_there(crew: Callers, fleet: Fleet) -> None:
    readable, hidden, archived = add_thread(fleet), add_thread(fleet), add_thread(fleet)
    let_in(fleet, readable, "atlas")
    let_in(fleet, archived, "atlas", write=True)
    fleet.execute("update threads set archived_at = now() where id = %s", archived)
    add_route(fleet, "atlas", "beacon")
    atlas, missing = await crew.agent("atlas"), ThreadId.new()

    refusals = [
        await refused(kind, atlas, fleet, thread_id)
        for kind, thread_id in (
            (Forbidden, readable),
            (NotFound, hidden),
            (NotFound, missing),
            (Conflict, archived),
        )
    ]

    assert str(refusals[1]).replace(str(hidden), "") == str(refusals[2]).replace(str(missing), "")
    assert [row["rule"] for row in facts(fleet, "a2a.delegate.blocked")] == ["access"] * 4


async def test_who_can_not_act_is_not_asked(crew: Callers, fleet: Fleet) -> None:
    thread_id, atlas = add_thread(fleet), await crew.agent("atlas")
    let_in(fleet, thread_id, "atlas", write=True)
    add_route(fleet, "atlas", "juniper")

    revoked = await refused(NotFound, atlas, fleet, thread_id, "juniper")
    itself = await refused(Forbidden, atlas, fleet, thread_id, "atlas")

    assert [revoked.details["rule"], itself.details["rule"]] == ["target", "path"]


async def test_an_error_while_deciding_is_a_block(crew: Callers, fleet: Fleet) -> None:
    thread_id, atlas = add_thread(fleet), await crew.agent("atlas")
    let_in(fleet, thread_id, "atlas", write=True)
    add_route(fleet, "atlas", "beacon")
    set_setting(fleet, "max_hops", "plenty")

    refusal = await refused(Forbidden, atlas, fleet, thread_id)

    assert refusal.details["rule"] == "error"
    assert trail(fleet, "a2a.%") == [("a2a.delegate.blocked", "atlas", "error")]


async def test_a_request_that_can_not_be_written_down_is_not_made(crew: Callers, fleet: Fleet) -> None:
    thread_id, atlas = add_thread(fleet), await crew.agent("atlas")
    let_in(fleet, thread_id, "atlas", write=True)
    add_route(fleet, "atlas", "beacon")
    fleet.execute(
        "create function unwritable() returns trigger language plpgsql as"
        " $$ begin raise exception 'disk full'; end $$"
    )
    fleet.execute(
        "create trigger unwritable before insert on audit_log for each row"
        " when (new.action = 'a2a.delegate.allowed') execute function unwritable()"
    )

    with pytest.raises(ConsoleError):
        await asks(atlas, fleet, thread_id)

    assert count(fleet, *MADE) == [0, 0, 0, 0]


async def test_people_do_not_delegate(crew: Callers, fleet: Fleet) -> None:
    thread_id, ana = add_thread(fleet, ANA), await crew.person(ANA)

    await refused(Forbidden, ana, fleet, thread_id)

    assert trail(fleet, "a2a.%") == []


async def test_an_agent_waits_for_the_word_of_a_person_and_for_the_end(crew: Callers, fleet: Fleet) -> None:
    """It asks again with what it saw last; nothing is kept for it in between, so a restart costs nothing."""
    thread_id, ana = add_thread(fleet), await crew.person(ANA)
    atlas, beacon = await crew.agent("atlas"), await crew.agent("beacon")
    let_in(fleet, thread_id, "atlas", write=True)
    add_route(fleet, "atlas", "beacon", "requires_human_approval")
    asked = await asks(atlas, fleet, thread_id)
    assert asked.approval is not None
    question = DelegationAsked(approval_id=asked.approval.id, seen=asked.mark, wait_seconds=20)

    short = await atlas.call(RUNS_OUTCOME, question.model_copy(update={"wait_seconds": 0.05}))
    waiting = asyncio.create_task(atlas.call(RUNS_OUTCOME, question))
    decision = Approving(approval_id=asked.approval.id, digest_seen=asked.approval.digest)
    await ana.call(APPROVALS_APPROVE, decision)
    allowed = await waiting
    restarted = await crew.restarted("atlas")
    after_restart = await restarted.call(RUNS_OUTCOME, DelegationAsked(approval_id=asked.approval.id))
    ending = asyncio.create_task(
        restarted.call(RUNS_OUTCOME, question.model_copy(update={"seen": "allowed:running"}))
    )
    (job,) = (await beacon.call(CLAIMS_TAKE, Claim(auto_start=True))).jobs
    await beacon.call(JOBS_COMPLETE, JobDone(job_id=job.id, attempt=job.attempt, result_summary="7 files"))
    await ending
    ended = await restarted.call(RUNS_OUTCOME, question.model_copy(update={"seen": "allowed:running"}))

    assert short.mark == "waiting"
    assert (allowed.state, allowed.mark) == (DelegationState.ALLOWED, "allowed:queued")
    assert after_restart == allowed
    assert allowed.approval is not None
    assert allowed.approval.decided_by == "Ana Costa"
    assert ended.mark == "allowed:succeeded"
    assert ended.run is not None
    assert ended.run.output_summary == {"summary": "7 files"}
    by_run = await restarted.call(RUNS_OUTCOME, DelegationAsked(run_id=ended.run.id))
    assert by_run.run == ended.run


async def test_only_the_agent_that_asked_is_told(crew: Callers, fleet: Fleet) -> None:
    thread_id, atlas, beacon = add_thread(fleet), await crew.agent("atlas"), await crew.agent("beacon")
    let_in(fleet, thread_id, "atlas", write=True)
    let_in(fleet, thread_id, "beacon", write=True)
    add_route(fleet, "atlas", "beacon")
    made = (await asks(atlas, fleet, thread_id)).run
    assert made is not None

    for agent, run_id in ((beacon, made.id), (atlas, RunId.new()), (atlas, add_run(fleet, thread_id))):
        with pytest.raises(NotFound, match="no such delegation"):
            await agent.call(RUNS_OUTCOME, DelegationAsked(run_id=run_id))
    with pytest.raises(Invalid):
        await atlas.call(RUNS_OUTCOME, DelegationAsked())
    assert (await beacon.call(RUNS_GET, RunAsked(run_id=made.id))).id == made.id


def test_an_agent_asks_at_most_once_a_second() -> None:
    assert RUNS_DELEGATE.per_minute == 60
