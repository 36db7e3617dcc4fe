"""A program's exit code decides what becomes of its job."""

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from agent_console.agent import Done, JobContext
from agent_console.agent.outcome import ERROR_LENGTH
from agent_console.agent.program_watch import ProgramWatch
from tests.agent.processes import children_of
from tests.agent.stage import Stage


@pytest.mark.parametrize(
    ("script", "status", "attempt", "code"),
    [
        ("exit 0", "succeeded", 1, None),
        ("exit 75", "queued", 2, "exit_75"),
        ("exit 3", "failed", 1, "exit_3"),
        ("kill -SEGV $$", "failed", 1, "signal_SIGSEGV"),
    ],
)
async def test_the_exit_code_decides(
    stage: Stage, script: str, status: str, attempt: int, code: str | None
) -> None:
    job_id = await stage.enqueue()

    async with stage.working(stage.shell(script)):
        became = await stage.ended(job_id)

    assert (became, stage.column(job_id, "attempt"), stage.column(job_id, "error_code")) == (status, attempt, code)


@pytest.mark.rule("R002-62")
async def test_a_failure_tells_the_last_lines_of_its_error_output_without_secrets(stage: Stage) -> None:
    job_id = await stage.enqueue()
    script = "i=0; while [ $i -lt 30 ]; do i=$((i+1)); echo line $i >&2; done; echo password=hunter2 >&2; exit 1"

    async with stage.working(stage.shell(script)):
        await stage.ended(job_id)

    error = str(stage.column(job_id, "error_message"))
    assert error.splitlines()[:2] == ["exit code 1:", "line 12"]
    assert error.splitlines()[-2:] == ["line 30", "password=«redacted»"]


async def test_of_a_long_failure_the_exit_code_and_the_end_are_kept(stage: Stage) -> None:
    """The last words of a stack trace are the ones that say what happened."""
    job_id = await stage.enqueue()
    script = "for i in 1 2 3 4 5 6; do printf '%1000s\\n' $i >&2; done; echo ValueError: no path >&2; exit 3"

    async with stage.working(stage.shell(script)):
        await stage.ended(job_id)

    error = str(stage.column(job_id, "error_message"))
    assert error.startswith("exit code 3:\n+")
    assert error.endswith(" 6\nValueError: no path")
    assert len(error) <= ERROR_LENGTH


async def test_a_silent_failure_tells_its_exit_code(stage: Stage) -> None:
    job_id = await stage.enqueue()

    async with stage.working(stage.shell("exit 3")):
        await stage.ended(job_id)

    assert stage.column(job_id, "error_message") == "exit code 3"


async def test_a_program_that_can_not_be_started_is_told_and_may_be_tried_again(stage: Stage) -> None:
    job_id = await stage.enqueue()

    async with stage.working(stage.command("/nowhere/at-all")):
        became = await stage.ended(job_id)

    assert (became, stage.column(job_id, "error_code")) == ("queued", "not_started")


async def test_a_program_that_nobody_hears_any_more_is_ended(stage: Stage) -> None:
    """Its pipe would be full before long, and it would stand still."""
    job_id = await stage.enqueue()
    before = {child.pid for child in children_of(os.getpid())}

    def deaf(message: str, **_: object) -> None:
        raise RuntimeError(f"nobody hears: {message}")

    async def runs(job: JobContext) -> Done:
        vars(job)["event"] = deaf
        return await stage.shell("echo here; sleep 600")(job)

    async with stage.working(runs):
        became = await stage.ended(job_id)

    error = str(stage.column(job_id, "error_message"))
    assert (became, error) == ("queued", "RuntimeError: nobody hears: here")
    assert {child.pid for child in children_of(os.getpid())} <= before


async def test_a_program_that_can_not_be_watched_is_ended(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = await stage.enqueue()
    before = {child.pid for child in children_of(os.getpid())}
    monkeypatch.setattr(sys, "executable", str(tmp_path / "nowhere"))

    with ProgramWatch(0.1) as watch:
        async with stage.working(replace(stage.shell("sleep 600"), watch=watch)):
            became = await stage.ended(job_id)
            left = {child.pid for child in children_of(os.getpid())} - before

    assert (became, stage.column(job_id, "error_code"), left) == ("queued", "handler_error", set())
