"""The real program in a real terminal: tmux holds it, the test reads its screen and presses its keys."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType

REPOSITORY = Path(__file__).parents[2]
PATIENCE = 90.0
LOOK_SECONDS = 0.1
CONSOLE = (sys.executable, "-m", "agent_console")
REVERSED = re.compile(r"\x1b\[(\d+;)*7(;\d+)*m(\x1b\[[34][\d;]+m)*[^\x1b]*$")
QUIET = "0 0 1"
"""No mouse, and a cursor."""
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
        self._written = folder / "written"
        self._pasted = folder / "pasted"
        self.folder = folder
        self._size = size
        self.data = folder / "data"

    def start(self, *arguments: str, environment: Mapping[str, str] = MappingProxyType({})) -> None:
        self.run([*CONSOLE, *arguments], environment)

    def run(self, program: Sequence[str], environment: Mapping[str, str] = MappingProxyType({})) -> None:
        """Start any program, with more in its environment than a journey has anyway."""
        self._pid_file.unlink(missing_ok=True)
        added = shlex.join(["env", *(f"{name}={value}" for name, value in environment.items())])
        inner = shlex.quote(f"echo $$ > {shlex.quote(str(self._pid_file))}; exec {added} {shlex.join(program)}")
        # Whatever the program leaves behind has its environment; the shell must not be taken for that.
        script = f"echo BEFORE; sh -c {inner}; echo EXIT CODE $?; exec env -i {shutil.which('cat')}"
        size = ("-x", str(self._size[0]), "-y", str(self._size[1]))
        written = f"exec env -i {shutil.which('cat')} > {shlex.quote(str(self._written))}"
        # In one breath, so that not even the first byte is missed.
        self._tmux("-f", os.devnull, "new-session", "-d", *size, script, ";", "pipe-pane", written)

    def written(self) -> bytes:
        """Everything that the program has sent to the terminal, byte by byte."""
        return self._written.read_bytes()

    def press(self, *keys: str) -> None:
        self._tmux("send-keys", *keys)

    def paste(self, text: str) -> None:
        """As a terminal pastes: bracketed, if the program asked for that."""
        # From a file: as an argument of tmux it could not be long.
        self._pasted.write_text(text)
        self._tmux("load-buffer", str(self._pasted), ";", "paste-buffer", "-p", "-r")

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
        def seen() -> bool:
            screen = self.screen()
            return all(word in screen for word in words)

        return wait_until(seen, lambda: f"{words}\n{self.screen()}", within=within)

    def wait_without(self, words: str) -> None:
        """Wait until these words are gone; a key that follows Esc too soon would make another key of it."""
        wait_until(lambda: words not in self.screen(), lambda: f"still {words}\n{self.screen()}")

    def wait_for_reverse(self, words: str) -> None:
        """Wait until the line with these words is where the next key goes."""

        def has_focus() -> bool:
            lines = self._tmux("capture-pane", "-p", "-e").splitlines()
            return any(words in line and REVERSED.search(line.partition(words)[0]) for line in lines)

        wait_until(has_focus, lambda: f"{words}\n{self.screen()}")

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
            "HOME": str(self.folder),
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


def leave(console: Terminal) -> None:
    console.press("q")
    console.wait_for_end(0)
    console.wait_for_nobody()
    assert console.modes() == QUIET
