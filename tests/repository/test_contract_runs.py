"""Runs that people ask for, through both repositories."""

from datetime import timedelta

import pytest

from agent_console.domain.errors import Conflict, Forbidden, Invalid, NotFound
from agent_console.domain.ids import AgentId, JobId, RunId, ThreadId
from agent_console.domain.job_acts import JobCancelling
from agent_console.domain.jobs import JobAsked
from agent_console.domain.runs import (
    NewRun,
    RunAsked,
    RunCancelling,
    RunQuery,
    ThreadRunQuery,
    TraceAsked,
    TraceKind,
)
from agent_console.domain.states import RunStatus
from agent_console.domain.working import CancelAcknowledged, Claim, JobDone, JobFailed
from agent_console.repository.operations import JOBS_GET
from agent_console.repository.operations.job_acts import JOBS_CANCEL
from agent_console.repository.operations.runs import (
    RUNS_CANCEL,
    RUNS_GET,
    RUNS_IN_THREAD,
    RUNS_LIST,
    RUNS_START,
    RUNS_TRACE,
)
from agent_console.repository.operations.working import CLAIMS_TAKE, JOBS_ACKNOWLEDGE, JOBS_COMPLETE, JOBS_FAIL
from agent_console.repository.port import REFETCH, Change, Repository, Topic
from agent_console.repository.postgres import walked_pages
from tests.repository.test_contract_changes import heard_until, next_of
from tests.support.asking import (
    ANA,
    OLE,
    VERA,
    Callers,
    add_route,
    asks,
    count,
    facts,
    started,
    trail,
)
from tests.support.conversations import add_run, add_thread, let_in, say
from tests.support.fleet import Fleet

SECRET = "Bearer sk-abcdefghijklmnopqrstuvwxyz012345"


async def claimed(agent: Repository) -> tuple[JobId, int]:
    """The job that waits for the agent, begun."""
    (job,) = (await agent.call(CLAIMS_TAKE, Claim(auto_start=True))).jobs
    return job.id, job.attempt


def about(fleet: Fleet, run_id: RunId) -> list[tuple[object, ...]]:
    """What the audit trail tells of one run: action, kind of actor, name."""
    return fleet.execute(
        "select action, actor_type, actor_label from audit_log where run_id = %s and action like %s order by seq",
        *(run_id, "run.%"),
    )


@pytest.mark.rule(
    "R002-47", "R002-48", "R002-49", "R002-50", "R002-51", "R002-54", "R002-56", "R002-59", "R002-60", "R002-64",
    "R002-65", "U002-1", "U002-8",
)  # fmt: skip
async def test_a_run_has_one_job_that_waits_for_its_agent(crew: Callers, fleet: Fleet) -> None:
    thread_id, atlas, ole = add_thread(fleet), fleet.agent_id("atlas"), await crew.person(OLE)
    message_id = say(fleet, thread_id)

    made = await ole.call(
        RUNS_START,
        NewRun(thread_id=thread_id, target_agent_id=atlas, input_message_id=message_id, max_run_seconds=600),
    )
    read = await ole.call(RUNS_GET, RunAsked(run_id=made.id))
    assert made.job_id is not None
    job = await ole.call(JOBS_GET, JobAsked(job_id=made.job_id))

    assert read == made
    assert (made.status, made.target, made.requested_by) == (RunStatus.QUEUED, "atlas", "Ole Berg")
    assert (made.requested_by_user_id, made.requested_by_agent_id) == (fleet.user_id(OLE), None)
    assert (made.delegation_path, made.parent_run_id, made.route_version) == ((), None, None)
    assert made.deadline_at == made.created_at + timedelta(seconds=600)
    assert (job.type, job.bound_agent_id, job.run_id, job.max_run_seconds) == ("agent_run", atlas, made.id, 600)
    assert job.payload == {
        "form": 1,
        "run_id": str(made.id),
        "thread_id": str(thread_id),
        "input_message_id": str(message_id),
        "trace_id": str(made.trace_id),
        "parent_run_id": None,
        "delegation_path": [],
        "requested_by": str(fleet.user_id(OLE)),
        "connector_ref": "pull",
    }
    assert count(fleet, "runs", "jobs where run_id is not null") == [1, 1]
    assert about(fleet, made.id) == [("run.create", "human", "Ole Berg")]


@pytest.mark.rule("R002-61", "R002-63", "R002-131", "U002-8", "U002-17")
async def test_a_run_follows_its_job_and_each_step_is_told_once_by_who_made_it(
    crew: Callers, fleet: Fleet
) -> None:
    thread_id, ole, atlas = add_thread(fleet), await crew.person(OLE), await crew.agent("atlas")
    run = await started(ole, fleet, thread_id)

    job_id, attempt = await claimed(atlas)
    running = await ole.call(RUNS_GET, RunAsked(run_id=run.id))
    await atlas.call(JOBS_COMPLETE, JobDone(job_id=job_id, attempt=attempt, result_summary=f"done; {SECRET}"))
    ended = await ole.call(RUNS_GET, RunAsked(run_id=run.id))

    assert (running.status, running.ended_at) == (RunStatus.RUNNING, None)
    assert (ended.status, ended.started_at) == (RunStatus.SUCCEEDED, running.started_at)
    assert ended.ended_at is not None
    with pytest.raises(Conflict, match="succeeded"):
        await ole.call(RUNS_CANCEL, RunCancelling(run_id=run.id))
    assert "done" in str(ended.output_summary["summary"])
    assert SECRET not in str(ended.output_summary)
    assert about(fleet, run.id) == [
        ("run.create", "human", "Ole Berg"),
        ("run.start", "agent", "atlas"),
        ("run.finish", "agent", "atlas"),
    ]
    assert facts(fleet, "run.finish") == [{"job_id": str(job_id), "attempt": 1}]


@pytest.mark.rule("R002-62", "U002-18")
async def test_a_failure_is_the_agents_and_shows_no_secret(crew: Callers, fleet: Fleet) -> None:
    thread_id, ole, atlas = add_thread(fleet), await crew.person(OLE), await crew.agent("atlas")
    run = await started(ole, fleet, thread_id)
    job_id, attempt = await claimed(atlas)

    # An agent's own word for it makes no timeout: only time does.
    fail = JobFailed(job_id=job_id, attempt=attempt, error=f"no: {SECRET}", error_code="deadline", retryable=False)
    await atlas.call(JOBS_FAIL, fail)

    ended = await ole.call(RUNS_GET, RunAsked(run_id=run.id))
    assert (ended.status, ended.error_code) == (RunStatus.FAILED, "deadline")
    assert SECRET not in str(ended.error_message)
    assert about(fleet, run.id)[-1] == ("run.fail", "agent", "atlas")


async def test_another_try_begins_no_run_twice(crew: Callers, fleet: Fleet) -> None:
    thread_id, ole, atlas = add_thread(fleet), await crew.person(OLE), await crew.agent("atlas")
    run = await started(ole, fleet, thread_id)
    job_id, attempt = await claimed(atlas)

    await atlas.call(JOBS_FAIL, JobFailed(job_id=job_id, attempt=attempt, error="busy"))
    fleet.execute("update jobs set next_attempt_at = null, look_at = '-infinity' where id = %s", job_id)
    await claimed(atlas)

    assert [row[0] for row in about(fleet, run.id)] == ["run.create", "run.start"]
    assert (await ole.call(RUNS_GET, RunAsked(run_id=run.id))).status is RunStatus.RUNNING


@pytest.mark.rule("R002-55", "U002-1", "U002-8")
async def test_a_waiting_run_is_cancelled_at_once(crew: Callers, fleet: Fleet) -> None:
    thread_id, ole = add_thread(fleet), await crew.person(OLE)
    run = await started(ole, fleet, thread_id)
    fleet.execute("update threads set archived_at = now() where id = %s", thread_id)

    cancelled = await ole.call(RUNS_CANCEL, RunCancelling(run_id=run.id, reason="wrong agent"))

    assert (cancelled.status, cancelled.shown_status) == (RunStatus.CANCELLED, "cancelled")
    assert fleet.one("select status from jobs where id = %s", run.job_id) == "cancelled"
    assert about(fleet, run.id)[1:] == [("run.cancel", "human", "Ole Berg")]
    assert fleet.one("select reason from audit_log where action = 'run.cancel'") == "wrong agent"
    again = await ole.call(RUNS_CANCEL, RunCancelling(run_id=run.id))
    assert (again, len(about(fleet, run.id))) == (cancelled, 2)


@pytest.mark.parametrize("through", ["run", "job"])
async def test_a_running_run_is_asked_to_stop_and_ends_when_its_agent_has(
    crew: Callers, fleet: Fleet, through: str
) -> None:
    thread_id, ole, atlas = add_thread(fleet), await crew.person(OLE), await crew.agent("atlas")
    run = await started(ole, fleet, thread_id)
    job_id, attempt = await claimed(atlas)

    if through == "run":
        await ole.call(RUNS_CANCEL, RunCancelling(run_id=run.id))
        await ole.call(RUNS_CANCEL, RunCancelling(run_id=run.id))
    else:
        await ole.call(JOBS_CANCEL, JobCancelling(job_id=job_id))
    asked = await ole.call(RUNS_GET, RunAsked(run_id=run.id))
    await atlas.call(JOBS_ACKNOWLEDGE, CancelAcknowledged(job_id=job_id, attempt=attempt))

    assert (asked.status, asked.shown_status) == (RunStatus.RUNNING, "cancelling")
    assert (await ole.call(RUNS_GET, RunAsked(run_id=run.id))).status is RunStatus.CANCELLED
    assert about(fleet, run.id)[2:] == [("run.cancel", "human", "Ole Berg"), ("run.stop", "agent", "atlas")]


async def test_who_watches_hears_that_a_run_began_and_that_it_ended(crew: Callers, fleet: Fleet) -> None:
    thread_id, ole, atlas = add_thread(fleet), await crew.person(OLE), await crew.agent("atlas")
    run = await started(ole, fleet, thread_id)
    hears = ole.changes()
    assert await next_of(hears) == REFETCH
    about_it = Change(topic=Topic.RUNS, id=str(run.id))

    job = (await atlas.call(CLAIMS_TAKE, Claim(auto_start=True))).job
    assert job is not None
    await heard_until(hears, about_it)
    await atlas.call(JOBS_COMPLETE, JobDone(job_id=job.id, attempt=1))
    await heard_until(hears, about_it)

    assert (await ole.call(RUNS_GET, RunAsked(run_id=run.id))).status is RunStatus.SUCCEEDED
    await hears.aclose()


@pytest.mark.rule("R002-66")
async def test_a_key_gives_the_first_run_again_and_nothing_else(crew: Callers, fleet: Fleet) -> None:
    thread_id, ole, ana = add_thread(fleet, visibility="shared"), await crew.person(OLE), await crew.person(ANA)
    asked = NewRun(thread_id=thread_id, target_agent_id=fleet.agent_id("atlas"), idempotency_key="k1")

    first = await ole.call(RUNS_START, asked)
    again = await ole.call(RUNS_START, asked)

    assert again == first
    assert (count(fleet, "runs"), len(trail(fleet, "run.create"))) == ([1], 1)
    with pytest.raises(Conflict, match="idempotency key"):
        await ole.call(RUNS_START, asked.model_copy(update={"target_agent_id": fleet.agent_id("beacon")}))
    with pytest.raises(Conflict, match="idempotency key"):
        await ana.call(RUNS_START, asked)


@pytest.mark.rule("R002-133", "R002-134", "U002-1")
async def test_a_run_is_reached_only_through_the_rights_in_its_thread(crew: Callers, fleet: Fleet) -> None:
    thread_id, elsewhere = add_thread(fleet), add_thread(fleet, ANA)
    let_in(fleet, thread_id, VERA)
    foreign = say(fleet, elsewhere, ANA, "not for ole")
    ole, vera, ana = [await crew.person(email) for email in (OLE, VERA, ANA)]
    beacon = await crew.agent("beacon")
    run, hidden = await started(ole, fleet, thread_id), await started(ana, fleet, elsewhere)
    missing = RunId.new()

    for wrong in (hidden.id, missing):
        with pytest.raises(NotFound, match=f"no run {wrong}"):
            await ole.call(RUNS_GET, RunAsked(run_id=wrong))
        with pytest.raises(NotFound, match=f"no run {wrong}"):
            await ole.call(RUNS_CANCEL, RunCancelling(run_id=wrong))
        with pytest.raises(NotFound):
            await ole.call(RUNS_TRACE, TraceAsked(run_id=wrong))
    with pytest.raises(NotFound):
        await ole.call(RUNS_TRACE, TraceAsked(trace_id=hidden.trace_id))
    for thread in (elsewhere, ThreadId.new()):
        with pytest.raises(NotFound):
            await started(ole, fleet, thread)
        with pytest.raises(NotFound):
            await ole.call(RUNS_IN_THREAD, ThreadRunQuery(thread_id=thread))
    with pytest.raises(NotFound, match="no message"):
        await ole.call(
            RUNS_START,
            NewRun(thread_id=thread_id, target_agent_id=fleet.agent_id("atlas"), input_message_id=foreign),
        )
    assert (await vera.call(RUNS_GET, RunAsked(run_id=run.id))).id == run.id
    with pytest.raises(Forbidden):
        await vera.call(RUNS_CANCEL, RunCancelling(run_id=run.id))
    with pytest.raises(NotFound):
        await beacon.call(RUNS_GET, RunAsked(run_id=run.id))
    assert [one.id for one in (await ole.call(RUNS_LIST, RunQuery())).items] == [run.id]
    assert len((await ana.call(RUNS_LIST, RunQuery())).items) == 2


async def test_a_reader_who_may_not_write_starts_and_cancels_nothing(crew: Callers, fleet: Fleet) -> None:
    thread_id = add_thread(fleet, ANA)
    let_in(fleet, thread_id, OLE)
    ole, ana = await crew.person(OLE), await crew.person(ANA)
    run = await started(ana, fleet, thread_id)

    with pytest.raises(Forbidden):
        await started(ole, fleet, thread_id)
    with pytest.raises(Forbidden):
        await ole.call(RUNS_CANCEL, RunCancelling(run_id=run.id))


async def test_who_can_not_act_is_not_asked(crew: Callers, fleet: Fleet) -> None:
    thread_id, ole = add_thread(fleet), await crew.person(OLE)

    with pytest.raises(Conflict, match="revoked"):
        await started(ole, fleet, thread_id, "juniper")
    with pytest.raises(NotFound, match="no agent"):
        await ole.call(RUNS_START, NewRun(thread_id=thread_id, target_agent_id=AgentId.new()))

    assert count(fleet, "runs") == [0]


@pytest.mark.rule("R002-11")
async def test_a_run_goes_where_its_agents_routing_hint_points_when_it_begins(crew: Callers, fleet: Fleet) -> None:
    thread_id, ole = add_thread(fleet), await crew.person(OLE)
    first = await started(ole, fleet, thread_id)

    fleet.execute("update agents set connector_ref = 'slack' where name = 'atlas'")
    second = await started(ole, fleet, thread_id)

    hints = [
        fleet.one("select payload ->> 'connector_ref' from jobs where id = %s", run.job_id)
        for run in (first, second)
    ]
    assert hints == ["pull", "slack"]


@pytest.mark.rule("R002-111", "R002-108", "R002-109")
async def test_runs_are_listed_newest_first_by_thread_state_and_agent(
    crew: Callers, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when a page ends early because it has looked at enough that the reader may not see."""
    monkeypatch.setattr(walked_pages, "WALKED_AT_MOST", 4)
    thread_id, other = add_thread(fleet), add_thread(fleet, ANA, visibility="shared")
    hidden = add_thread(fleet, ANA)
    ole = await crew.person(OLE)
    mine = [add_run(fleet, thread_id, ended=ended) for ended in (True, False, True)]
    for _ in range(6):
        add_run(fleet, hidden)
    shared = add_run(fleet, other, "beacon")

    async def listed(**query: object) -> list[RunId]:
        found, after = [], None
        for _ in range(20):
            page = await ole.call(RUNS_LIST, RunQuery.model_validate({"limit": 2, "after": after} | query))
            found += [run.id for run in page.items]
            if (after := page.next) is None:
                return found
        raise AssertionError("the list has no end")

    assert await listed() == [shared, *mine[::-1]]
    assert await listed(status=["succeeded"]) == [mine[2], mine[0]]
    assert await listed(status=["running", "succeeded"]) == [shared, *mine[::-1]]
    assert await listed(target_agent_id=fleet.agent_id("beacon")) == [shared]
    assert await listed(target_agent_id=fleet.agent_id("atlas"), status=["running"]) == [mine[1]]
    assert await listed(thread_id=thread_id) == mine[::-1]
    assert await listed(thread_id=thread_id, status=["canceled"]) == []
    of_thread = await ole.call(RUNS_IN_THREAD, ThreadRunQuery(thread_id=thread_id, limit=2))
    assert [run.id for run in of_thread.items] == mine[:0:-1]
    with pytest.raises(Invalid):
        await ole.call(RUNS_LIST, RunQuery(after="1; drop table runs"))


@pytest.mark.rule("R002-57", "R002-58")
async def test_a_trace_is_a_tree_with_what_waits_for_a_person(crew: Callers, fleet: Fleet) -> None:
    thread_id, ole = add_thread(fleet), await crew.person(OLE)
    atlas, beacon = await crew.agent("atlas"), await crew.agent("beacon")
    for pair in (("atlas", "beacon"), ("beacon", "cartographer")):
        add_route(fleet, *pair)
    add_route(fleet, "atlas", "dispatch", "requires_human_approval")
    root = await started(ole, fleet, thread_id)
    await claimed(atlas)

    below = (await asks(atlas, fleet, thread_id, "beacon")).run
    waiting = (await asks(atlas, fleet, thread_id, "dispatch")).approval
    lowest = (await asks(beacon, fleet, thread_id, "cartographer")).run
    assert below is not None
    assert waiting is not None
    assert lowest is not None
    by_run = await ole.call(RUNS_TRACE, TraceAsked(run_id=lowest.id))
    by_trace = await ole.call(RUNS_TRACE, TraceAsked(trace_id=root.trace_id))

    told = [(row.kind, row.depth, row.run_id or row.approval_id, row.agent, row.status) for row in by_run.items]
    assert told == [
        (TraceKind.RUN, 0, root.id, "atlas", "running"),
        (TraceKind.RUN, 1, below.id, "beacon", "queued"),
        (TraceKind.RUN, 2, lowest.id, "cartographer", "queued"),
        (TraceKind.APPROVAL, 1, waiting.id, "dispatch", "pending"),
    ]
    assert [row.parent_run_id for row in by_run.items] == [None, root.id, below.id, root.id]
    assert by_run.items[0].seconds is not None
    assert by_run.items[1].seconds is None
    assert [row.run_id for row in by_trace.items] == [row.run_id for row in by_run.items]
    assert not by_run.truncated
    with pytest.raises(Invalid):
        await ole.call(RUNS_TRACE, TraceAsked())
