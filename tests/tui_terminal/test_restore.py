"""The terminal is left as it was found, on every way out."""

import re
import signal
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tui_terminal.real_terminal import RealTerminal

SET_TITLE = "\x1b]0;"
MODES = {"1049", "1000", "1003", "1006", "1015", "1016", "1004", "2004"}


@pytest.fixture
def program(tmp_path: Path) -> Iterator[RealTerminal]:
    terminal = RealTerminal(["-m", "tests.tui_terminal.pty_program", str(tmp_path / "state")])
    terminal.read_until("READY")
    yield terminal
    terminal.close()


def modes_left_on(received: str) -> set[str]:
    """The private modes that were set last and never unset; the cursor and wrapping count the other way."""
    state = dict[str, str](re.findall(r"\x1b\[\?(\d+)([hl])", received))
    left = {mode for mode in MODES if state.get(mode) == "h"}
    return left | {mode for mode in ("25", "7") if state.get(mode) == "l"}


def keyboards_left_pushed(received: str) -> int:
    return len(re.findall(r"\x1b\[>\d+u", received)) - received.count("\x1b[<u")


def assert_as_found(terminal: RealTerminal) -> None:
    assert modes_left_on(terminal.received) == set()
    assert keyboards_left_pushed(terminal.received) == 0
    assert terminal.line_is_as_before()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)])
def test_a_signal_ends_it_with_the_terminal_restored(
    program: RealTerminal, number: signal.Signals, code: int
) -> None:
    program.kill(number)

    assert program.end() == code
    assert_as_found(program)


def test_the_skeleton_stays_until_the_first_paint(program: RealTerminal) -> None:
    started = program.received

    program.press("q")
    program.end()

    assert started.count("\x1b[?1049h") == 1
    assert started.index("connecting…") < started.index("READY")
    assert "\x1b[2J" not in started.partition("connecting…")[2]


def test_a_signal_ends_it_even_while_it_is_stuck(program: RealTerminal) -> None:
    program.press("s")
    program.read_until("STUCK")

    program.kill(signal.SIGTERM)

    assert program.end() == 143
    assert_as_found(program)


def test_the_last_frame_is_gone_before_the_screen_is_left(program: RealTerminal) -> None:
    program.press("q")

    program.end()

    assert "\x1b[2J" in program.received.rpartition("\x1b[?1049l")[0].rpartition("READY")[2]


def test_leaving_gives_the_code_of_the_app(program: RealTerminal) -> None:
    program.press("n")

    assert program.end() == 7
    assert_as_found(program)


def test_the_mouse_no_longer_counts_pixels(program: RealTerminal) -> None:
    program.press("\x1b[?2048;2$y")
    program.read_until("\x1b[?1016h")

    program.press("q")

    assert program.end() == 0
    assert_as_found(program)


@pytest.mark.parametrize("key", ["c", "w"])
def test_a_crash_is_told_without_a_single_value(program: RealTerminal, key: str, tmp_path: Path) -> None:
    program.press(key)
    code = program.end()

    (report,) = (tmp_path / "state").iterdir()
    text = report.read_text()
    assert code == 70
    assert_as_found(program)
    assert str(report) in program.received.replace("\r\n", "")
    assert stat.S_IMODE(report.stat().st_mode) == 0o600
    assert "RuntimeError" in text
    assert "in action_crash" in text or "in fail" in text
    assert "hunter2" not in text + program.received
    assert SET_TITLE not in text + program.received
    assert "Traceback" not in program.received


def test_a_known_error_is_told_as_a_sentence(program: RealTerminal) -> None:
    program.press("e")

    assert program.end() == 3
    assert "Nobody answers. Check the address." in program.received
    assert SET_TITLE not in program.received
    assert_as_found(program)


def test_a_lent_terminal_is_drawn_anew(program: RealTerminal) -> None:
    program.press("z")
    program.read_until("LENT")
    program.received = ""

    program.read_until("READY")
    program.press("q")

    assert program.end() == 0


def test_put_to_sleep_and_woken_it_is_drawn_anew(program: RealTerminal) -> None:
    program.kill(signal.SIGTSTP)
    program.wait_until_stopped()
    program.received = ""

    program.kill(signal.SIGCONT)

    program.read_until("READY")
    program.press("q")
    assert program.end() == 0


def test_a_report_that_cannot_be_kept_is_told_instead(tmp_path: Path) -> None:
    no_folder = tmp_path / "state"
    no_folder.touch()
    terminal = RealTerminal(["-m", "tests.tui_terminal.pty_program", str(no_folder)])
    terminal.read_until("READY")

    terminal.press("c")

    assert terminal.end() == 70
    assert "could not be kept" in terminal.received
    assert "in action_crash" in terminal.received
    assert "hunter2" not in terminal.received
    assert SET_TITLE not in terminal.received
    assert "\\x1b]0;owned" in terminal.received
    terminal.close()


def test_a_dropped_line_ends_it(tmp_path: Path) -> None:
    terminal = RealTerminal(["-m", "tests.tui_terminal.pty_program", str(tmp_path)])
    terminal.read_until("READY")

    assert terminal.hang_up() == 129
