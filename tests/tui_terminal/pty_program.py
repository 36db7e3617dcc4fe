"""A console in small, to be run in a real terminal and ended in every way: see test_restore."""

import sys
import threading
from pathlib import Path
from typing import ClassVar

from agent_console.tui.terminal.skeleton import write_skeleton

if __name__ == "__main__":
    write_skeleton("fleet")

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import Static

from agent_console.domain.errors import CannotConnect
from agent_console.tui.terminal.restore import run_restoring
from agent_console.tui.terminal.terminal_app import TerminalApp

TITLE = "\x1b]0;owned\a"
"""What somebody might put into words that an error carries."""


class Program(TerminalApp[None]):
    BINDINGS: ClassVar[list[BindingType]] = [
        ("c", "crash", "Crash"),
        ("w", "crash_in_worker", "Crash in a worker"),
        ("e", "known_error", "Fail as known"),
        ("s", "stick", "Block the loop"),
        ("z", "lend", "Lend the terminal"),
        ("q", "quit", "Quit"),
        ("n", "leave_with_seven", "Leave with seven"),
    ]

    def compose(self) -> ComposeResult:
        yield Static("READY", id="state")

    def action_crash(self) -> None:
        dsn = "postgresql://console:hunter2@db/fleet"
        raise RuntimeError(f"cannot reach {dsn} {TITLE}")

    def action_crash_in_worker(self) -> None:
        async def fail() -> None:
            local_password = "hunter2"
            raise RuntimeError(f"worker failed with {len(local_password)} letters")

        self.run_worker(fail())

    def action_known_error(self) -> None:
        raise CannotConnect("Nobody answers.", hint=f"Check the address. {TITLE}")

    def action_stick(self) -> None:
        self.query_one(Static).update("STUCK")
        self.call_after_refresh(threading.Event().wait)

    def action_lend(self) -> None:
        with self.suspend():
            print("LENT", flush=True)

    def action_leave_with_seven(self) -> None:
        self.exit(return_code=7)


if __name__ == "__main__":
    sys.exit(run_restoring(Program(), Path(sys.argv[1])))
