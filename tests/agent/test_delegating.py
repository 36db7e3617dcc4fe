"""An agent asks another and waits for a person, through restarts of everybody."""

import asyncio
import signal
import sys
from pathlib import Path
from uuid import UUID

import pytest

from agent_console.agent import JobContext
from agent_console.domain.approvals import Approving, Rejecting
from agent_console.domain.delegation import DelegationState
from agent_console.domain.errors import Forbidden
from agent_console.domain.ids import ApprovalId, ThreadId
from agent_console.domain.runs import NewRun, Run
from agent_console.repository.operations.approvals import APPROVALS_APPROVE, APPROVALS_REJECT
from agent_console.repository.operations.runs import RUNS_START
from tests.agent.stage import Stage, until
from tests.support.asking import ANA, add_route
from tests.support.conversations import add_thread, say

EXAMPLE = Path(__file__).parents[2] / "examples" / "ask_a_reviewer.py"
APPROVALS = "select id, digest from approvals where state = 'pending'"
REVIEWS = """echo '{"agent_console": "result", "summary": "fine"}'"""


async def asked_in_a_thread(stage: Stage) -> tuple[ThreadId, Run]:
    """A person asks atlas to act."""
    thread_id = add_thread(stage.fleet)
    message_id = say(stage.fleet, thread_id, content="Plan the launch.")
    async with stage.caller() as ole:
        atlas = stage.fleet.agent_id("atlas")
        new = NewRun(thread_id=thread_id, target_agent_id=atlas, input_message_id=message_id)
        return thread_id, await ole.call(RUNS_START, new)


async def pending_approval(stage: Stage) -> tuple[ApprovalId, str]:
    await until(lambda: len(stage.fleet.execute(APPROVALS)) == 1)
    [(approval_id, digest)] = stage.fleet.execute(APPROVALS)
    assert isinstance(approval_id, UUID)
    return ApprovalId.of(approval_id), str(digest)


async def ended_run(stage: Stage, run: Run) -> str:
    await until(lambda: stage.fleet.one("select ended_at is not null from runs where id = %s", run.id) is True)
    return str(stage.fleet.one("select status from runs where id = %s", run.id))


async def asks_beacon(stage: Stage, job: JobContext) -> str:
    await job.post_message("I ask beacon.")
    answer = await job.delegate(stage.fleet.agent_id("beacon"), "Please review.")
    summary = answer.run.output_summary.get("summary") if answer.run else None
    return f"{answer.state.value}: {summary}"


@pytest.mark.rule("R002-76", "U002-13")
async def test_a_person_is_waited_for_through_a_restart(stage: Stage) -> None:
    add_route(stage.fleet, "atlas", "beacon", "requires_human_approval")
    thread_id, run = await asked_in_a_thread(stage)

    async with stage.working(lambda job: asks_beacon(stage, job)):
        approval_id, digest = await pending_approval(stage)
    async with (
        stage.working(lambda job: asks_beacon(stage, job)),
        stage.working(stage.shell(REVIEWS), name="beacon"),
    ):
        async with stage.caller(ANA) as ana:
            await ana.call(APPROVALS_APPROVE, Approving(approval_id=approval_id, digest_seen=digest))
        became = await ended_run(stage, run)

    summary = stage.fleet.one("select output_summary from runs where id = %s", run.id)
    assert (became, summary) == ("succeeded", {"summary": "allowed: fine"})
    assert stage.fleet.one("select count(*) from approvals") == 1
    said = "select content from messages where thread_id = %s and author_agent_id is not null order by seq"
    assert stage.fleet.execute(said, thread_id) == [("I ask beacon.",), ("Please review.",)]


async def test_a_rejection_is_an_answer(stage: Stage) -> None:
    add_route(stage.fleet, "atlas", "beacon", "requires_human_approval")
    _, run = await asked_in_a_thread(stage)

    async with stage.working(lambda job: asks_beacon(stage, job)):
        approval_id, digest = await pending_approval(stage)
        async with stage.caller(ANA) as ana:
            decision = Rejecting(approval_id=approval_id, digest_seen=digest, reason="not today")
            await ana.call(APPROVALS_REJECT, decision)
        await ended_run(stage, run)

    summary = stage.fleet.one("select output_summary from runs where id = %s", run.id)
    assert summary == {"summary": f"{DelegationState.REJECTED.value}: None"}


async def test_what_the_policy_forbids_is_raised(stage: Stage) -> None:
    _, run = await asked_in_a_thread(stage)
    refusals: list[str] = []

    async def tries(job: JobContext) -> None:
        try:
            await job.delegate(str(stage.fleet.agent_id("beacon")), "Please review.")
        except Forbidden as refusal:
            refusals.append(str(refusal.details["rule"]))

    async with stage.working(tries):
        await ended_run(stage, run)

    assert refusals == ["no_route"]


async def test_the_example_in_python_delegates_and_waits_for_a_person(stage: Stage, tmp_path: Path) -> None:
    add_route(stage.fleet, "atlas", "beacon", "requires_human_approval")
    thread_id, run = await asked_in_a_thread(stage)
    key_file = tmp_path / "author.key"
    key_file.write_text(stage.key())
    reviewer = str(stage.fleet.agent_id("beacon"))

    example = await asyncio.create_subprocess_exec(sys.executable, EXAMPLE, stage.url, key_file, reviewer)
    try:
        async with stage.working(stage.shell(REVIEWS), name="beacon"):
            approval_id, digest = await pending_approval(stage)
            async with stage.caller(ANA) as ana:
                await ana.call(APPROVALS_APPROVE, Approving(approval_id=approval_id, digest_seen=digest))
            became = await ended_run(stage, run)
    finally:
        example.send_signal(signal.SIGTERM)
        example.send_signal(signal.SIGINT)
        code = await example.wait()

    summary = stage.fleet.one("select output_summary from runs where id = %s", run.id)
    assert (became, summary, code) == ("succeeded", {"summary": "reviewed: fine"}, 0)
    asked = "select count(*) from messages where thread_id = %s and content like 'I ask for a review of: Plan%%'"
    assert stage.fleet.one(asked, thread_id) == 1
