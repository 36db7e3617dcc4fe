"""What a program is given, and what its lines become."""

import math
import sys

import pytest
from pydantic import JsonValue

from agent_console.agent import JobContext, JobFailure
from agent_console.domain.runs import NewRun
from agent_console.repository.operations.runs import RUNS_START
from tests.agent.stage import Stage
from tests.support.conversations import add_thread, say

# Lines as another language would print them.
FORMS = r"""
echo 'plain words'
echo '{"agent_console": "progress", "percentage": 40.4, "message": "reading", "stage": "one"}'
echo '{"agent_console": "event", "level": "error", "message": "no disk", "payload": {"free": 3}}'
echo '{"agent_console": "result", "summary": "first", "result": {"n": 1}}'
echo '{"agent_console": "result", "summary": "7 files", "result": {"files": 7, "api_key": "abc"}}'
echo '{"agent_console": "progress", "percentage": "much"}'
echo '{"agent_console": "dance"}'
echo '{"something": "else"}'
"""


@pytest.mark.rule("U001-21")
async def test_lines_of_the_small_form_are_progress_events_and_the_result(stage: Stage) -> None:
    job_id = await stage.enqueue()

    async with stage.working(stage.shell(FORMS)):
        became = await stage.ended(job_id)

    assert (became, stage.column(job_id, "result_summary")) == ("succeeded", "7 files")
    assert stage.result(job_id) == {"files": 7, "api_key": "«redacted»"}
    progress = "select progress from jobs where id = %s"
    assert stage.fleet.one(progress, job_id) == {"percentage": 40, "message": "reading", "stage": "one"}
    lines = stage.lines(job_id)
    assert lines[:2] == [("info", "plain words"), ("error", "no disk")]
    assert [words for level, words in lines if level == "info"][1:] == [
        '{"agent_console": "progress", "percentage": "much"}',
        '{"agent_console": "dance"}',
        '{"something": "else"}',
    ]
    assert [str(words).partition(":")[0] for level, words in lines if level == "warn"] == [
        "The line before was not understood"
    ] * 2


async def test_the_payload_comes_on_standard_input_and_the_facts_in_the_environment(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_CONSOLE_DSN", "postgresql://somebody:secret@db/x")
    job_id = await stage.enqueue(type="report", payload={"path": "ä b", "n": [1, None]})
    script = "cat; echo; env | grep ^AGENT_CONSOLE_ | sort"

    async with stage.working(stage.shell(script)):
        await stage.ended(job_id)

    assert [words for _, words in stage.lines(job_id)] == [
        '{"n": [1, null], "path": "\\u00e4 b"}',
        "AGENT_CONSOLE_ATTEMPT=1",
        f"AGENT_CONSOLE_JOB_ID={job_id}",
        "AGENT_CONSOLE_JOB_TYPE=report",
        f"AGENT_CONSOLE_URL={stage.url}",
    ]


async def test_a_megabyte_of_payload_that_nobody_reads_holds_nothing_up(stage: Stage) -> None:
    job_id = await stage.enqueue(payload={"words": "x" * 900_000})

    async with stage.working(stage.shell("exit 0")):
        became = await stage.ended(job_id)

    assert became == "succeeded"


async def test_the_key_is_given_only_to_who_shall_have_it(stage: Stage) -> None:
    first, second = await stage.enqueue(), await stage.enqueue()
    script = "import os, sys; sys.exit(0 if os.environ.get('AGENT_CONSOLE_KEY') == 'the key' else 3)"

    async with stage.working(stage.command(sys.executable, "-c", script)):
        without = {await stage.ended(first), await stage.ended(second)}
    third = await stage.enqueue()
    async with stage.working(stage.command(sys.executable, "-c", script, key="the key")):
        given = await stage.ended(third)

    assert (without, given) == ({"failed"}, "succeeded")


async def test_a_program_reads_what_it_was_asked_and_answers_in_the_thread(stage: Stage) -> None:
    thread_id = add_thread(stage.fleet)
    asked = say(stage.fleet, thread_id, content="Count\nthe files.")
    script = """
        echo "$AGENT_CONSOLE_THREAD_ID $AGENT_CONSOLE_RUN_ID"
        printf '%s' "$AGENT_CONSOLE_MESSAGE" | tr '\\n' '-'
        echo
        echo '{"agent_console": "message", "text": "Seven."}'
        echo '{"agent_console": "result", "summary": "seven"}'
    """
    async with stage.caller() as ole:
        new = NewRun(thread_id=thread_id, target_agent_id=stage.fleet.agent_id("atlas"), input_message_id=asked)
        run = await ole.call(RUNS_START, new)
    assert run.job_id is not None

    async with stage.working(stage.shell(script)):
        await stage.ended(run.job_id)

    assert [words for _, words in stage.lines(run.job_id)] == [f"{thread_id} {run.id}", "Count-the files."]
    said = "select content, author_agent_id, run_id from messages where thread_id = %s order by seq desc limit 1"
    assert stage.fleet.execute(said, thread_id) == [("Seven.", stage.fleet.agent_id("atlas"), run.id)]
    assert stage.fleet.one("select output_summary from runs where id = %s", run.id) == {"summary": "seven"}


async def test_without_a_thread_a_message_is_a_warning(stage: Stage) -> None:
    job_id = await stage.enqueue()

    async with stage.working(stage.shell("""echo '{"agent_console": "message", "text": "Anybody?"}'""")):
        became = await stage.ended(job_id)

    assert became == "succeeded"
    assert stage.lines(job_id) == [
        (
            "warn",
            f"A message could not be posted: Job {job_id} belongs to no thread. Name one with thread_id.",
        )
    ]


async def test_a_result_that_is_refused_fails_the_job_and_says_why(stage: Stage) -> None:
    job_id = await stage.enqueue()

    async def large(_: JobContext) -> dict[str, JsonValue]:
        return {"words": "x" * 1_100_000}

    async with stage.working(large):
        became = await stage.ended(job_id)

    assert (became, stage.column(job_id, "error_code")) == ("failed", "result_refused")
    assert "larger than 1,000,000 bytes" in str(stage.column(job_id, "error_message"))


@pytest.mark.parametrize("number", [math.nan, math.inf, 10**400], ids=["nan", "infinity", "beyond a double"])
async def test_a_result_that_can_not_be_sent_fails_the_job_and_names_the_place(
    stage: Stage, number: float
) -> None:
    job_id = await stage.enqueue()

    async def unstable(_: JobContext) -> dict[str, JsonValue]:
        return {"losses": [0.1, number]}

    async with stage.working(unstable):
        became = await stage.ended(job_id)

    assert (became, stage.column(job_id, "error_code")) == ("failed", "result_refused")
    assert stage.column(job_id, "error_message") == (
        "The result was refused: result: must hold finite numbers, none beyond 1.8e308"
    )


@pytest.mark.parametrize(
    ("code", "kept"), [("x" * 200, "x" * 70 + "… +130 characters"), (" ", None)], ids=["long", "blank"]
)
async def test_a_failure_is_told_whatever_its_code_is(stage: Stage, code: str, kept: str | None) -> None:
    job_id = await stage.enqueue()

    async def failing(_: JobContext) -> None:
        raise JobFailure("no luck", code=code)

    async with stage.working(failing):
        became = await stage.ended(job_id)

    assert (became, stage.column(job_id, "error_code")) == ("failed", kept)


async def test_progress_that_is_no_number_is_a_warning_and_the_work_goes_on(stage: Stage) -> None:
    job_id = await stage.enqueue()

    async def unstable(job: JobContext) -> None:
        job.progress(percentage=math.nan)

    async with stage.working(unstable):
        became = await stage.ended(job_id)

    assert became == "succeeded"
    assert stage.lines(job_id) == [("warn", "Progress that could not be told as it was.")]


async def test_a_signed_job_is_signed(stage: Stage) -> None:
    job_id = await stage.enqueue(signed=True)

    async with stage.working(stage.shell("""echo '{"agent_console": "result", "result": {"b": 1, "a": "ä"}}'""")):
        became = await stage.ended(job_id)

    assert (became, stage.result(job_id)) == ("succeeded", {"a": "ä", "b": 1})
