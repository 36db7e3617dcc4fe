"""Runs an app so that on every way out the terminal is left as it was found.

A signal asks the app to end and gives it a moment; when that passes, or a second signal comes, the terminal
is restored from here and the process ends at once. That is also the way out when the terminal has hung up
and Textual waits for it.
"""

import os
import signal
import sys
import termios
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from textual.app import ReturnType

from agent_console.domain.errors import ConsoleError
from agent_console.domain.safe_text import safe_block
from agent_console.tui.terminal import calling, skeleton
from agent_console.tui.terminal.crash_report import cause_of, crash_report, keep_crash_report, without_secrets
from agent_console.tui.terminal.signal_watch import ending_on_signals
from agent_console.tui.terminal.terminal_app import TerminalApp

CRASHED = 70
MOMENT_TO_END = 2.0
"""Seconds. Cancelling a query on a frozen database can take ten; nobody waits that long for a signal."""

# ST first ends whatever sequence was cut off; the keyboard is popped on the screen it was pushed on.
RESTORED = (
    "\x1b\\\x1b[?2026l\x1b[?2004l\x1b[?2048l\x1b[?7h"
    "\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[?1016l\x1b[?1004l"
    "\x1b[<u\x1b[?1049l\x1b[?25h\x1b[m"
)

LineSettings: TypeAlias = list[int | list[bytes | int]]
"""What termios knows of the line the terminal is on."""


def run_restoring(app: TerminalApp[ReturnType], state_folder: Path, *, mouse: bool = True) -> int:
    """Run the app; the answer is the exit code for the process.

    128 + n after signal n; 70 after a crash, whose report is kept in the state folder and whose path is told
    on stderr; the code of a `ConsoleError` after one of those; else the app's own return code.
    """
    settings = _line_settings()
    error: BaseException | None

    def end_now(number: int) -> None:
        _restore(settings, holds_terminal=app.holds_terminal)
        os._exit(128 + number)

    with ending_on_signals(app.end_soon, end_now, MOMENT_TO_END) as received:
        try:
            app.run(mouse=mouse)
            code, error = app.return_code or 0, app.crash
        except SystemExit as ended:
            code, error = ended.code if isinstance(ended.code, int) else 0, None
        except BaseException as raised:
            code, error = CRASHED, raised
        _restore(settings, holds_terminal=app.holds_terminal)
    if received:
        _say_what_is_left()
        return 128 + received[0]
    return code if error is None else _tell(cause_of(error), app.crash_notes, state_folder)


def _say_what_is_left() -> None:
    """To a line that is gone nothing can be said; Python would fail at it later, and end with its own code."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _line_settings() -> LineSettings | None:
    try:
        return termios.tcgetattr(0)
    except (termios.error, OSError):
        return None


def _restore(settings: LineSettings | None, *, holds_terminal: bool) -> None:
    """Put the terminal back, from any thread and without ever waiting for it."""
    skeleton.withdraw()
    if holds_terminal:
        _write_without_waiting(2, (calling.taken_back() + RESTORED).encode())
    if settings is not None:
        # In the background, setting the line would stop the process instead.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTOU})
        with suppress(termios.error, OSError):
            termios.tcsetattr(0, termios.TCSANOW, settings)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTTOU})


def _write_without_waiting(descriptor: int, data: bytes) -> None:
    with suppress(OSError):
        os.set_blocking(descriptor, False)
        try:
            os.write(descriptor, data)
        finally:
            os.set_blocking(descriptor, True)


def _tell(error: BaseException, notes: list[str], state_folder: Path) -> int:
    sentence = str(error) if isinstance(error, ConsoleError) else f"agent-console failed: {type(error).__name__}."
    try:
        report = f"The report is in {keep_crash_report(error, notes, state_folder)}"
    except OSError as refused:
        report = f"The report could not be kept ({refused.strerror}):\n{crash_report(error, notes)}"
    with suppress(OSError):
        # An error may carry words of others, and they would be written to a terminal.
        sys.stderr.write("\n".join(safe_block(f"{without_secrets(sentence)}\n{report}\n")))
        sys.stderr.flush()
    return error.exit_code if isinstance(error, ConsoleError) else CRASHED
