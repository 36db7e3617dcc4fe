"""A line that drops ends the console, also one that was told to ignore that."""

import signal
from pathlib import Path

from tests.tui_terminal.real_terminal import RealTerminal

# As nohup does it; the program itself is the small console that is ended in every way.
DEAF_TO_HANGING_UP = (
    "import runpy, signal; signal.signal(signal.SIGHUP, signal.SIG_IGN);"
    "runpy.run_module('tests.tui_terminal.pty_program', run_name='__main__')"
)


def test_a_dropped_line_ends_it_even_when_it_ignores_the_signal(tmp_path: Path) -> None:
    terminal = RealTerminal(["-c", DEAF_TO_HANGING_UP, str(tmp_path / "state")])
    terminal.read_until("READY")

    try:
        code = terminal.hang_up()
    finally:
        terminal.kill(signal.SIGKILL)

    assert code == 128 + signal.SIGTERM
