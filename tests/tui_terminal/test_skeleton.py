"""The first frame: at once, small, and gone without a trace when nothing follows it."""

import signal
import subprocess
import sys

import pytest

from agent_console.tui.terminal.skeleton import LEAVE, frame
from tests.tui_terminal.emulator import terminal
from tests.tui_terminal.real_terminal import RealTerminal

WRITE = "from agent_console.tui.terminal.skeleton import write_skeleton; write_skeleton('fleet');"


@pytest.mark.parametrize("size", [(60, 20), (80, 24), (120, 40), (5000, 100)])
def test_the_frame_is_small_and_fills_its_bars(size: tuple[int, int]) -> None:
    columns, lines = min(size[0], 200), size[1]
    screen, stream = terminal(columns, lines)

    drawn = frame("fleet", *size)
    stream.feed(frame("fleet", columns, lines))

    assert len(drawn.encode()) < 2048
    assert screen.text()[0].startswith(" fleet")
    assert screen.text()[2].strip() == "connecting…"
    assert {screen.buffer[y][x].bg for y in (0, lines - 1) for x in range(columns)} == {"brightblack"}


def test_a_hostile_title_stays_in_its_bar() -> None:
    screen, stream = terminal(40, 10)

    stream.feed(frame("a\x1b[2J\x9b" + "b" * 100, 40, 10))

    assert screen.text()[0].startswith(" a?[2J?bbb")
    assert screen.text()[1].strip() == ""


def test_only_what_the_interpreter_has_is_imported_before_the_frame() -> None:
    names = "print(*sorted(m for m in sys.modules if not m.startswith('agent_console')))"
    bare = subprocess.run([sys.executable, "-c", f"import sys; {names}"], capture_output=True, check=True)

    ours = subprocess.run(
        [sys.executable, "-c", f"import sys, agent_console.tui.terminal.skeleton; {names}"],
        capture_output=True,
        check=True,
    )

    assert set(ours.stdout.split()) - set(bare.stdout.split()) == set()


def test_nothing_is_written_where_nobody_looks() -> None:
    piped = subprocess.run([sys.executable, "-c", WRITE], capture_output=True, check=True)
    dumb = RealTerminal(["-c", WRITE], TERM="dumb")

    assert piped.stdout == b""
    assert dumb.end() == 0
    assert dumb.received == ""
    dumb.close()


def test_without_colour_the_bars_are_reversed() -> None:
    real = RealTerminal(["-c", WRITE], NO_COLOR="1")

    real.end()

    assert "\x1b[7m fleet" in real.received
    assert "97;100" not in real.received
    real.close()


@pytest.mark.parametrize(
    ("then", "number", "code", "told"),
    [
        ("pass", None, 0, ""),
        ("raise RuntimeError('before textual')", None, 1, "before textual"),
        ("import threading; threading.Event().wait()", signal.SIGTERM, 143, ""),
        ("import threading; threading.Event().wait()", signal.SIGINT, 130, ""),
    ],
    ids=["end", "error", "SIGTERM", "SIGINT"],
)
def test_it_is_withdrawn_when_nothing_follows(
    then: str, number: signal.Signals | None, code: int, told: str
) -> None:
    real = RealTerminal(["-c", f"{WRITE} print('AFTER', flush=True); {then}"])
    real.read_until("AFTER")
    if number is not None:
        real.kill(number)

    assert real.end() == code
    shown_after = real.received.partition(LEAVE)[2]
    assert LEAVE in real.received
    assert told in shown_after
    real.close()
