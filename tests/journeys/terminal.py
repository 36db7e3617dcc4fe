"""The real program in a real terminal: tmux holds it, the test reads its screen and presses its keys."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
PATIENCE = 90.0
LOOK_SECONDS = 0.05
KEPT = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH")


def wait_until(holds: Callable[[], bool], what: Callable[[], str], *, within: float = PATIENCE) -> float:
    """Look until something holds, and tell how many seconds that took."""
    begun = time.monotonic()
    while not holds():
        assert time.monotonic() - begun < within, f"not within {within:g} s: {what()}"
        time.sleep(LOOK_SECONDS)
    return time.monotonic() - begun


class Terminal:
    """One terminal with one program in it; the shell around it tells how the program ended."""

    def __init__(self, folder: Path, size: tuple[int, int] = (80, 24)) -> None:
        assert shutil.which("tmux"), "These tests need tmux: apt install tmux, or brew install tmux."
        self._socket = folder / "tmux"
        self._pid_file = folder / "pid"
        self._folder = folder
        self._size = size
        self.data = folder / "data"

    def start(self, *arguments: str) -> None:
        self._pid_file.unlink(missing_ok=True)
        program = shlex.join([sys.executable, "-m", "agent_console", *arguments])
        inner = shlex.quote(f"echo $$ > {shlex.quote(str(self._pid_file))}; exec {program}")
        # Whatever the program leaves behind has its environment; the shell must not be taken for that.
        script = f"echo BEFORE; sh -c {inner}; echo EXIT CODE $?; exec env -i {shutil.which('cat')}"
        width, height = self._size
        self._tmux("-f", os.devnull, "new-session", "-d", "-x", str(width), "-y", str(height), script)

    def press(self, *keys: str) -> None:
        self._tmux("send-keys", *keys)

    def paste(self, text: str) -> None:
        """As a terminal pastes: bracketed, if the program asked for that."""
        self._tmux("set-buffer", text)
        self._tmux("paste-buffer", "-p")

    def resize(self, width: int, height: int) -> None:
        self._tmux("resize-window", "-x", str(width), "-y", str(height))

    def screen(self) -> str:
        return self._tmux("capture-pane", "-p")

    def is_alternate(self) -> bool:
        return self._tmux("display-message", "-p", "#{alternate_on}").strip() == "1"

    def modes(self) -> str:
        """Mouse, bracketed paste and the like: what a program must unset again."""
        return self._tmux("display-message", "-p", "#{mouse_any_flag} #{mouse_sgr_flag} #{cursor_flag}").strip()

    def wait_for(self, *words: str, within: float = PATIENCE) -> float:
        return wait_until(
            lambda: all(word in self.screen() for word in words),
            lambda: f"{words}\n{self.screen()}",
            within=within,
        )

    def wait_for_end(self, code: int, within: float = PATIENCE) -> float:
        """Wait until the program has ended with this exit code, and its screen with it."""
        took = self.wait_for("BEFORE", f"EXIT CODE {code}", within=within)
        assert not self.is_alternate()
        return took

    @property
    def pid(self) -> int:
        return int(self._pid_file.read_text())

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def processes(self) -> dict[int, str]:
        """Everything that works for the program or on its data, with its command line."""
        found: dict[int, str] = {}
        for process in Path("/proc").iterdir():
            with suppress(OSError):
                if process.name.isdigit() and self._belongs(process):
                    found[int(process.name)] = (process / "cmdline").read_text().replace("\0", " ").strip()
        return {pid: command for pid, command in found.items() if command and "tmux" not in command}

    def _belongs(self, process: Path) -> bool:
        """PostgreSQL overwrites its environment, but stands in its data folder."""
        told = (process / "environ").read_text(errors="replace")
        return (process / "cwd").readlink().is_relative_to(self.data) or f"AGENT_CONSOLE_DATA={self.data}" in told

    def wait_for_nobody(self) -> None:
        wait_until(lambda: not self.processes(), lambda: f"still running: {self.processes()}")

    def close(self) -> None:
        with suppress(subprocess.CalledProcessError):
            self._tmux("kill-server")
        for pid in self.processes():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.wait_for_nobody()

    def _tmux(self, *arguments: str) -> str:
        environment = {name: os.environ[name] for name in KEPT if name in os.environ}
        environment |= {
            "TERM": "xterm-256color",
            "LC_ALL": "C.UTF-8",
            "HOME": str(self._folder),
            "AGENT_CONSOLE_DATA": str(self.data),
        }
        done = subprocess.run(
            ["tmux", "-u", "-S", str(self._socket), *arguments],
            cwd=REPOSITORY,
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout


@contextmanager
def terminal(folder: Path, size: tuple[int, int] = (80, 24)) -> Iterator[Terminal]:
    opened = Terminal(folder, size)
    try:
        yield opened
    finally:
        opened.close()
