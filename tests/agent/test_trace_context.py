"""The trace of a run goes on in the programs that work on it, whoever made their instruments."""

import re

from agent_console.domain.runs import NewRun
from agent_console.repository.operations.runs import RUNS_START
from tests.agent.stage import Stage
from tests.support.conversations import add_thread

# As W3C has it: version, trace id, span id, flags.
TRACEPARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-01")


async def test_a_program_is_given_the_trace_of_its_run(stage: Stage) -> None:
    thread_id = add_thread(stage.fleet, "ole@example.com")
    async with stage.caller() as ole:
        run = await ole.call(
            RUNS_START, NewRun(thread_id=thread_id, target_agent_id=stage.fleet.agent_id("atlas"))
        )
    assert run.job_id is not None

    async with stage.working(stage.shell('echo "$TRACEPARENT"')):
        await stage.ended(run.job_id)

    [(_, told)] = stage.lines(run.job_id)
    found = TRACEPARENT.fullmatch(str(told))
    assert found is not None
    assert run.trace_id is not None
    assert found.groups() == (run.trace_id.hex, run.id.hex[-16:])


async def test_a_job_that_nobody_asked_for_in_a_thread_has_none(stage: Stage) -> None:
    job_id = await stage.enqueue(payload={"trace_id": "03b50520-f590-7cbb-926c-e210f290f986"})

    async with stage.working(stage.shell('echo "none: $TRACEPARENT"')):
        await stage.ended(job_id)

    assert stage.lines(job_id) == [("info", "none: ")]
