"""A program's exit code decides what becomes of its job."""

import pytest

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
    assert error.splitlines()[-3:] == ["line 30", "password=«redacted»", "(exit code 1)"]
    assert error.splitlines()[0] == "line 12"


async def test_a_program_that_can_not_be_started_is_told_and_may_be_tried_again(stage: Stage) -> None:
    job_id = await stage.enqueue()

    async with stage.working(stage.command("/nowhere/at-all")):
        became = await stage.ended(job_id)

    assert (became, stage.column(job_id, "error_code")) == ("queued", "not_started")
