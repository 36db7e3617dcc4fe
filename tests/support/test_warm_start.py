"""A program that a warm Python starts finds what one that is started in the cold finds, and ends as that does."""

import json
import os
import pty
import signal
import subprocess
import sys

import pytest

from tests.support.warm_python import Session
from tests.support.warm_start import PROGRAMS, REPOSITORY, WarmProgram, warm_python

pytestmark = pytest.mark.xdist_group(PROGRAMS)

MODULE = "tests.support.seen_at_start"
TOLD = {"PATH": os.defpath, "LANG": "C.UTF-8", "TZ": "Asia/Tokyo", "PYTHONWARNINGS": "error", "OTHER": "=é"}


def warm(*words: str, session: Session = Session.SHARED) -> WarmProgram:
    return warm_python().start(MODULE, *words, environment=TOLD, folder=REPOSITORY, session=session)


def cold(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", MODULE, *words],
        env=TOLD,
        cwd=REPOSITORY,
        input="given",
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    "words", [("exit", "7"), ("fail", "words of its own"), ("wait",)], ids=lambda words: words[0]
)
def test_a_warm_program_finds_and_leaves_what_a_cold_one_does(words: tuple[str, ...]) -> None:
    expected = cold(*words)

    with warm(*words) as program:
        out, err = program.communicate("given")

    told, _, said = out.partition("\n")
    expected_told, _, expected_said = expected.stdout.partition("\n")
    assert json.loads(told) == json.loads(expected_told)
    assert (said, program.returncode) == (expected_said, expected.returncode)
    assert err.splitlines()[-1:] == expected.stderr.splitlines()[-1:]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT], ids=lambda number: number.name)
def test_a_signal_reaches_the_program_and_is_told_as_its_end(number: signal.Signals) -> None:
    with warm("wait") as program:
        assert program.stdout is not None
        program.stdout.readline()

        program.send_signal(number)

        assert program.wait() == -number
    assert program.poll() == -number


def test_a_program_that_sleeps_is_told_and_can_be_woken() -> None:
    with warm("wait") as program:
        program.send_signal(signal.SIGSTOP)
        program.wait_until_stopped()
        asleep = program.poll()

        program.send_signal(signal.SIGCONT)
        out, _ = program.communicate("awake")

    assert (asleep, out.splitlines()[-1], program.returncode) == (None, "awake", 0)


def test_a_test_that_fails_leaves_no_program_behind() -> None:
    with pytest.raises(LookupError), warm("wait") as program:
        raise LookupError

    assert program.poll() == -signal.SIGKILL


def test_two_programs_do_not_hold_each_others_files() -> None:
    with warm("wait") as first, warm("wait") as second:
        out, _ = first.communicate("first")
        other, _ = second.communicate("second")

    assert (out.splitlines()[-1], other.splitlines()[-1]) == ("first", "second")


def test_a_terminal_is_the_programs_own() -> None:
    keeper, line = pty.openpty()
    program = warm_python().start(
        *(MODULE, "exit", "0"),
        environment=TOLD,
        session=Session.TERMINAL,
        stdin=line,
        stdout=line,
        stderr=line,
    )

    told = b""
    while b"\n" not in told:
        told += os.read(keeper, 65536)
    found = json.loads(told.partition(b"\n")[0])

    assert program.wait() == 0
    assert found["leads its session"]
    assert [is_terminal for _, is_terminal, _, _ in found["streams"]] == [True] * 3
    assert found["buffering"] == [True] * 3
    os.close(keeper)
    os.close(line)
