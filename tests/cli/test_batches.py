"""Acting on many jobs from the command line: all batches in one command, which can be stopped between two."""

import json
import os
import re
import signal
from pathlib import Path

import pytest

from agent_console.cli.batches import interruption
from agent_console.domain.batches import REFUSALS_KEPT, Batch, Refusal
from tests.cli.program import agent_console, environment, started
from tests.support.fleet import Fleet
from tests.support.warm_start import PROGRAMS

pytestmark = pytest.mark.xdist_group(PROGRAMS)

CANCEL = ("jobs", "cancel-many", "--type", "bulk", "--output", "json")
MANY = 3_000


def cancelled(fleet: Fleet) -> object:
    return fleet.one("select count(*) from jobs where type = 'bulk' and status = 'cancelled'")


def test_one_command_does_every_batch(tmp_path: Path, fleet: Fleet) -> None:
    fleet.add_jobs(7)

    dry = agent_console(*CANCEL, "--dry-run", home=tmp_path, AGENT_CONSOLE_DSN=fleet.working)
    before = cancelled(fleet)
    done = agent_console(*CANCEL, "--batch-size", "3", home=tmp_path, AGENT_CONSOLE_DSN=fleet.working)

    assert (dry.code, json.loads(dry.out)["left"], before) == (0, 7, 0), dry.err
    assert (done.code, done.err) == (0, "")
    answer = json.loads(done.out)
    assert (answer["done"], answer["left"], answer["next"]) == (7, 0, None)
    assert (cancelled(fleet), fleet.one("select count(*) from audit_log")) == (7, 3)


def test_ctrl_c_stops_between_two_batches_and_tells_how_many_are_done(tmp_path: Path, fleet: Fleet) -> None:
    fleet.add_jobs(MANY)
    screen, stderr = os.openpty()
    variables = environment(tmp_path, AGENT_CONSOLE_DSN=fleet.working)
    with started(*CANCEL, "--batch-size", "1", variables=variables, stderr=stderr) as program:
        os.close(stderr)
        shown = until_shown(screen, " done, ")

        program.send_signal(signal.SIGINT)
        out, _ = program.communicate()
    shown += rest_of(screen)

    answer = json.loads(out)
    assert program.returncode == 130, shown
    assert 0 < answer["done"] < MANY
    assert answer["done"] == cancelled(fleet)
    assert f"Stopped: {answer['done']:,} done, {answer['left']:,} left." in shown
    assert "Traceback" not in shown
    cursor = re.findall(r"--after (job_\w+)", shown)[-1]
    rest = agent_console(*CANCEL, "--after", cursor, home=tmp_path, AGENT_CONSOLE_DSN=fleet.working)
    assert (rest.code, json.loads(rest.out)["done"]) == (0, MANY - answer["done"])


def until_shown(screen: int, words: str) -> str:
    shown = ""
    while words not in shown:
        shown += os.read(screen, 4096).decode()
    return shown


def rest_of(screen: int) -> str:
    """A terminal whose program is gone answers with an error instead of an end."""
    shown = b""
    try:
        while part := os.read(screen, 4096):
            shown += part
    except OSError:
        pass
    os.close(screen)
    return shown.decode()


async def test_whoever_ignores_ctrl_c_goes_on_ignoring_it() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with interruption():
            within = signal.getsignal(signal.SIGINT)
        after = signal.getsignal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)

    assert (within, after) == (signal.SIG_IGN, signal.SIG_IGN)


def test_what_cannot_go_on_says_how_far_it_came(tmp_path: Path, fleet: Fleet) -> None:
    fleet.add_jobs(5)
    newest = fleet.execute("select id from jobs where type = 'bulk' order by id desc")
    fleet.execute(
        "create function spoil() returns trigger language plpgsql as"
        " $$ begin raise exception 'no' using errcode = 'check_violation'; end $$"
    )
    spoilt = f"create trigger spoil before update on jobs for each row when (old.id = '{newest[2][0]}')"
    fleet.execute(f"{spoilt} execute function spoil()")

    ended = agent_console(*CANCEL, "--batch-size", "1", home=tmp_path, AGENT_CONSOLE_DSN=fleet.working)

    assert ended.code != 0
    assert "2 were done before this. Go on with: --after job_" in ended.err
    assert (cancelled(fleet), ended.out) == (2, "")


def test_an_answer_without_ids_is_refused_before_anything_is_done(tmp_path: Path, fleet: Fleet) -> None:
    fleet.add_jobs(2)

    ended = agent_console(*CANCEL[:-2], "-o", "ids", home=tmp_path, AGENT_CONSOLE_DSN=fleet.working)

    assert (ended.code, cancelled(fleet)) == (2, 0)
    assert "no ids" in ended.err


def test_a_story_goes_on_with_the_option_that_is_named(tmp_path: Path, fleet: Fleet) -> None:
    job_id = fleet.first_job("queued")
    cancel = agent_console("jobs", "cancel", str(job_id), home=tmp_path, AGENT_CONSOLE_DSN=fleet.working)
    story = ("jobs", "events", str(job_id), "--limit", "1")

    first = agent_console(*story, home=tmp_path, AGENT_CONSOLE_DSN=fleet.working)
    named = re.findall(r"--after-seq \d+", first.err)[0].split()
    second = agent_console(*story, *named, home=tmp_path, AGENT_CONSOLE_DSN=fleet.working)

    assert (cancel.code, first.code, second.code) == (0, 0, 0)
    assert "created as queued" in first.out
    assert "queued to cancelled" in second.out


def test_status_says_that_the_queue_is_paused(tmp_path: Path, fleet: Fleet) -> None:
    pause = ("queue", "pause", "--mode", "drain", "--reason", "the \x1b[31mdatabase moves")

    paused = agent_console(*pause, home=tmp_path, AGENT_CONSOLE_DSN=fleet.working)
    status = agent_console("status", home=tmp_path, AGENT_CONSOLE_DSN=fleet.working)

    assert (paused.code, status.code) == (0, 0), paused.err
    line = next(line for line in status.out.splitlines() if line.startswith("PAUSED"))
    assert "by Ana Costa" in line
    assert "database moves" in line
    assert "\x1b" not in status.out


def test_batches_add_up_and_keep_no_more_refusals_than_anyone_reads() -> None:
    refusals = tuple(Refusal(id=str(n), why="no") for n in range(REFUSALS_KEPT))
    first = Batch(done=1, unchanged=2, refused=refusals, refused_count=REFUSALS_KEPT, left=9, next="x")

    both = Batch(done=3, unchanged=4, refused=refusals, refused_count=REFUSALS_KEPT, left=5).following(first)

    assert (both.done, both.unchanged, both.left, both.next) == (4, 6, 5, None)
    assert (len(both.refused), both.refused_count) == (REFUSALS_KEPT, 2 * REFUSALS_KEPT)
