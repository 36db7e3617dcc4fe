"""`agent register` and `agent run` as the real program in a process of its own."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.agent.processes import alive, children_of
from tests.agent.stage import Stage, until
from tests.agent.test_registering import token
from tests.agent.test_stopping import HEEDS_NOTHING, WITH_CHILD, pids_in
from tests.cli.program import environment

EXAMPLE = Path(__file__).parents[2] / "examples" / "count_files.sh"


async def agent_console(home: Path, *words: str | Path, **variables: str) -> Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "agent_console", "agent", *words),
        env=environment(home, **variables),
        stdout=PIPE,
        stderr=PIPE,
    )


async def ended(process: Process) -> tuple[int | None, str, str]:
    out, err = await process.communicate()
    return process.returncode, out.decode(), err.decode()


@asynccontextmanager
async def running(stage: Stage, home: Path, *words: str | Path) -> AsyncIterator[Process]:
    """The program with a key in its file; killed if the test did not end it."""
    key_file = home / "atlas.key"
    key_file.touch(0o600)
    key_file.write_text(stage.key())
    process = await agent_console(home, "run", "--url", stage.url, "--key-file", key_file, *words)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


async def test_an_agent_comes_in_once_and_its_key_is_not_shown(stage: Stage, tmp_path: Path) -> None:
    words = ("register", "--url", stage.url, "--name", "newcomer", "--capability", "files")
    word = await token(stage)

    code, out, err = await ended(await agent_console(tmp_path, *words, AGENT_CONSOLE_REGISTRATION_TOKEN=word))

    key_file = tmp_path / ".config" / "agent-console" / "agent.key"
    assert (code, out) == (0, f"{stage.fleet.agent_id('newcomer')}\n"), err
    assert "_key_" not in out + err
    assert (key_file.stat().st_mode & 0o777, key_file.read_text()[:8]) == (0o600, "agt_key_")


async def test_the_example_in_shell_counts_and_terminating_it_lets_the_job_end(
    stage: Stage, tmp_path: Path
) -> None:
    (tmp_path / "counted").mkdir()
    for name in ("a", "b", "c"):
        (tmp_path / "counted" / name).touch()
    job_id = await stage.enqueue(payload={"folder": str(tmp_path / "counted")})
    missing = await stage.enqueue(payload={"folder": str(tmp_path / "nowhere")})

    async with running(stage, tmp_path, "--", EXAMPLE) as process:
        became = [await stage.ended(job_id), await stage.ended(missing)]
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGINT)
        _, _, err = await ended(process)

    assert became == ["succeeded", "failed"], err
    assert f"Here, at {stage.url}; up to 1 job at a time." in err
    assert (stage.result(job_id), stage.column(job_id, "result_summary")) == ({"files": 3}, "3 files")
    assert "there is no folder" in str(stage.column(missing, "error_message"))
    assert f"{job_id} ended: succeeded" in err


async def test_the_first_signal_drains_and_the_second_ends_at_once(stage: Stage, tmp_path: Path) -> None:
    job_id = await stage.enqueue()
    before = {child.pid for child in children_of(os.getpid())}
    script = HEEDS_NOTHING.format(file=tmp_path / "pids")

    async with running(stage, tmp_path, "--grace", "600", "--", "/bin/sh", "-c", script) as process:
        pids = await pids_in(tmp_path / "pids")
        tries_left = stage.column(job_id, "max_attempts - attempt")
        process.send_signal(signal.SIGTERM)
        assert process.stderr is not None
        async for line in process.stderr:
            if b"Leaving; 1 job " in line:
                break
        drained = (all(alive(pid) for pid in pids), stage.status(job_id))
        process.send_signal(signal.SIGTERM)
        code, _, _ = await ended(process)

    await until(lambda: not any(alive(pid) for pid in pids))
    assert (drained, code) == ((True, "running"), 130)
    given_back = "select status, max_attempts - attempt, agent_id from jobs where id = %s"
    assert stage.fleet.execute(given_back, job_id) == [("queued", tries_left, None)]
    assert {child.pid for child in children_of(os.getpid())} <= before


async def watch_of(process: Process, stage: Stage, pids: Collection[int]) -> int:
    """Once it knows of the program: what a program says is listened to after that."""
    await until(lambda: stage.fleet.execute("select 1 from job_events where message = 'here'") != [])
    (watch,) = {child.pid for child in children_of(process.pid)} - set(pids)
    return watch


@pytest.mark.parametrize("script", [WITH_CHILD, HEEDS_NOTHING], ids=["heeds TERM", "ignores TERM"])
async def test_whoever_kills_an_agent_ends_its_programs_too(stage: Stage, tmp_path: Path, script: str) -> None:
    job_id = await stage.enqueue()
    words = ("--grace", "0.2", "--", "/bin/sh", "-c", f"echo here; {script.format(file=tmp_path / 'pids')}")

    async with running(stage, tmp_path, *words) as process:
        pids = await pids_in(tmp_path / "pids")
        watch = await watch_of(process, stage, pids)
        process.kill()
        await ended(process)

        await until(lambda: not any(alive(pid) for pid in (*pids, watch)))
    assert stage.status(job_id) == "running"


async def test_a_watch_that_was_killed_is_followed_by_one_that_knows_all_of_it(
    stage: Stage, tmp_path: Path
) -> None:
    """The first job runs on while the second one begins."""
    await stage.enqueue(payload={"file": "first"}, priority=1)
    script = f'file={tmp_path}/$(sed "s/[^a-z]*file[^a-z]*//; s/[^a-z]//g"); echo here; '
    script += WITH_CHILD.format(file="$file")

    async with running(stage, tmp_path, "--concurrency", "2", "--", "/bin/sh", "-c", script) as process:
        pids = await pids_in(tmp_path / "first")
        watch = await watch_of(process, stage, pids)
        os.kill(watch, signal.SIGKILL)
        await stage.enqueue(payload={"file": "second"})
        pids += await pids_in(tmp_path / "second")
        await until(lambda: len(watches(process.pid, pids)) == 1)
        process.kill()
        await ended(process)

        await until(lambda: not any(alive(pid) for pid in pids))


def watches(agent: int, programs: list[int]) -> set[int]:
    return {child.pid for child in children_of(agent) if alive(child.pid)} - set(programs)


async def test_an_agent_that_was_started_to_outlive_its_terminal_does(stage: Stage, tmp_path: Path) -> None:
    """As nohup starts it: what is ignored stays ignored."""
    hangup = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        async with running(stage, tmp_path, "--", "true") as process:
            assert process.stderr is not None
            assert b"Here, at" in await process.stderr.readline()
            process.send_signal(signal.SIGHUP)
            job_id = await stage.enqueue()
            became = await stage.ended(job_id)
            process.send_signal(signal.SIGTERM)
            code, _, _ = await ended(process)
    finally:
        signal.signal(signal.SIGHUP, hangup)

    assert (became, code) == ("succeeded", 0)


async def test_a_drain_waits_for_the_job_that_runs(stage: Stage, tmp_path: Path) -> None:
    job_id = await stage.enqueue()
    script = f"touch {tmp_path}/begun; until [ -e {tmp_path}/go ]; do sleep 0.01; done; echo done"

    async with running(stage, tmp_path, "--grace", "600", "--", "/bin/sh", "-c", script) as process:
        await until((tmp_path / "begun").exists)
        process.send_signal(signal.SIGTERM)
        assert process.stderr is not None
        async for line in process.stderr:
            if b"Leaving; 1 job " in line:
                break
        (tmp_path / "go").touch()
        code, _, _ = await ended(process)

    assert (code, stage.status(job_id), stage.lines(job_id)) == (0, "succeeded", [("info", "done")])
