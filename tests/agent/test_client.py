"""The Python client: handlers by type, what they return and raise, and how often the agent speaks."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import JsonValue

from agent_console.agent import Agent, Done, JobContext, JobFailure, Pace
from agent_console.agent.line import SPREAD
from agent_console.agent.outcome import Returned
from agent_console.domain.errors import Invalid
from tests.agent.stage import FAST, LEASE, Stage, until


@pytest.mark.parametrize(
    ("returned", "summary", "result"),
    [
        (None, None, None),
        ("7 files", "7 files", None),
        ({"files": 7}, None, {"files": 7}),
        (Done("7 files", {"files": 7}), "7 files", {"files": 7}),
    ],
    ids=["nothing", "a sentence", "an object", "both"],
)
async def test_what_a_handler_returns_is_the_result(
    stage: Stage, returned: Returned, summary: str | None, result: dict[str, JsonValue] | None
) -> None:
    job_id = await stage.enqueue()

    async def returns(_: JobContext) -> Returned:
        return returned

    async with stage.working(returns):
        became = await stage.ended(job_id)

    stored = stage.fleet.execute("select result from job_results where job_id = %s", job_id)
    assert (became, stage.column(job_id, "result_summary")) == ("succeeded", summary)
    assert (stored[0][0] if stored else None) == result


# As a handler calls it that nobody checks.
untyped: Callable[..., JobFailure] = JobFailure
untyped_done: Callable[..., Done] = Done


def holds_itself() -> dict[str, object]:
    facts: dict[str, object] = {}
    facts["again"] = [facts]
    return facts


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        (["a"], "the handler returned a value of type list"),
        (7, "the handler returned a value of type int"),
        (False, "the handler returned a value of type bool"),
        (("a", "b"), "the handler returned a value of type tuple"),
        (untyped_done(result=["a"]), "it is of type list and no JSON object"),
        ({1: "a"}, "it holds a name of type int"),
        ({"at": {"one"}}, "it holds a value of type set"),
        (holds_itself(), "it is nested more than 100 levels deep, or holds itself"),
        ({"n": 10**5_000}, "result: must hold finite numbers"),
    ],
    ids=["list", "number", "yes or no", "tuple", "list within", "name", "value", "itself", "huge"],
)
@pytest.mark.parametrize("signed", [False, True], ids=["", "signed"])
async def test_what_is_no_result_fails_the_job_at_once_and_says_what_it_was(
    stage: Stage, returned: Any, words: str, signed: bool
) -> None:
    job_id = await stage.enqueue(signed=signed)

    async def returns(_: JobContext) -> Returned:
        answer: Returned = returned
        return answer

    async with stage.working(returns):
        became = await stage.ended(job_id)

    assert (became, stage.column(job_id, "attempt")) == ("failed", 1)
    assert stage.column(job_id, "error_code") == "result_refused"
    assert str(stage.column(job_id, "error_message")).startswith(f"The result was refused: {words}")


@pytest.mark.parametrize(
    ("raised", "status", "code"),
    [
        (JobFailure("no path", code="no_path"), "failed", "no_path"),
        (JobFailure("", retryable=True), "queued", None),
        (untyped(ValueError("no path"), code=404, retryable="yes"), "queued", "404"),
        (ValueError("token=abc"), "queued", "handler_error"),
        (asyncio.CancelledError(), "queued", "handler_error"),
    ],
    ids=["failure", "retryable and silent", "of other types", "unexpected", "cancelled by itself"],
)
async def test_what_a_handler_raises_is_the_failure(
    stage: Stage, raised: BaseException, status: str, code: str | None
) -> None:
    job_id = await stage.enqueue()

    async def raises(_: JobContext) -> None:
        raise raised

    async with stage.working(raises):
        became = await stage.ended(job_id)

    assert (became, stage.column(job_id, "error_code")) == (status, code)
    assert "abc" not in str(stage.column(job_id, "error_message"))


async def test_an_agent_takes_only_what_it_has_a_handler_for(stage: Stage) -> None:
    other, known = await stage.enqueue(type="other"), await stage.enqueue(type="report")
    agent = Agent(stage.url, stage.key(), pace=FAST)

    @agent.handle("report")
    async def report(job: JobContext) -> str:
        return job.type

    running = asyncio.create_task(agent.run(signals=False))
    became = await stage.ended(known)
    agent.leave()
    await running

    assert (became, stage.status(other)) == ("succeeded", "queued")


@pytest.mark.rule("R003-24", "U003-6")
async def test_a_silent_job_keeps_its_lease(stage: Stage) -> None:
    job_id = await stage.enqueue()
    begun = asyncio.Event()

    async def waits(job: JobContext) -> None:
        begun.set()
        await job.until_cancelled()

    # Heartbeats renew leases too: here they are too rare to help.
    pace = Pace(renewals_per_lease=50, claim_seconds=0.5, busy_heartbeat_seconds=600)
    async with stage.working(waits, pace=pace):
        await begun.wait()
        first = stage.column(job_id, "lease_expires_at")
        await until(lambda: stage.column(job_id, "lease_expires_at") != first)
        renewed = f"select count(*) > 0 from job_events where message = 'lease renewed for {LEASE} s'"
        await until(lambda: stage.fleet.one(renewed) is True)

    assert stage.status(job_id) == "queued"


@pytest.mark.rule("U003-6")
def test_the_pace_is_the_documented_one() -> None:
    pace = Pace()

    assert (pace.beat_seconds(120, busy=False), pace.beat_seconds(120, busy=True)) == (30, 10)
    assert (pace.renewal_seconds(120), pace.beat_seconds(15, busy=True)) == (40, 5)
    assert pace.batch_seconds == 0.3


@pytest.mark.rule("U000-16")
def test_an_agent_polls_every_five_to_ten_seconds() -> None:
    assert (Pace().claim_seconds, Pace.polling(10).claim_seconds, Pace.polling(10).refused_seconds) == (5, 10, 10)
    for seconds in (4.9, 10.1):
        with pytest.raises(Invalid, match="every 5 to 10 seconds"):
            Pace.polling(seconds)


@pytest.mark.rule("U000-5", "U000-21")
def test_the_pauses_grow_and_end_soon_after_the_server_is_back() -> None:
    """Five, ten, twenty; no longer, or an agent would not be back within half a minute."""
    pauses = Pace().retry_seconds

    assert list(pauses) == sorted(pauses)
    assert pauses[-3:] == (5, 10, 20)
    assert pauses[-1] * (1 + SPREAD) < 30


async def test_an_agent_that_can_do_nothing_or_too_much_is_refused() -> None:
    with pytest.raises(Invalid, match="can do nothing"):
        await Agent("http://127.0.0.1:9", "agt_key_x").run(signals=False)
    with pytest.raises(Invalid, match="1 to 50 jobs at once, not on 51"):
        Agent("http://127.0.0.1:9", "agt_key_x", concurrency=51)
