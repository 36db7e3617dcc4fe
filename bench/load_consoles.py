"""Ten people at their consoles: real programs in terminals of their own that walk through all panes."""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

from bench.console_memory import private_megabytes
from bench.fleet_stage import Fleet
from bench.terminal_pty import DOWN, LINES, PAGE_DOWN, UP, PtyProgram

WALK = ("0", "1", DOWN, "2", PAGE_DOWN, "3", DOWN, DOWN, "4", UP, "5", "6", PAGE_DOWN, "7")
STEP_SECONDS = 4.0
READ_SECONDS = 0.05
CONNECTED_SECONDS = 30.0
# Always the same: what the others hold is looked at from the beginning to the end.
KILLED = 0


@dataclass
class Consoles:
    """All are read by one thread, as terminals are: who does not read stops the program."""

    stage: Fleet
    home: Path
    count: int
    programs: list[PtyProgram] = field(default_factory=list)
    ended: int = 0
    _stopped: threading.Event = field(default_factory=threading.Event)
    _to_kill: threading.Event = field(default_factory=threading.Event)
    _reading: threading.Thread | None = None

    @classmethod
    @contextmanager
    def opened(cls, stage: Fleet, count: int) -> Iterator[Self]:
        with TemporaryDirectory(prefix="ac-") as home:
            consoles = cls(stage, Path(home), count)
            consoles.programs = [consoles._started(place) for place in range(count)]
            consoles._reading = threading.Thread(target=consoles._walk)
            consoles._reading.start()
            try:
                yield consoles
            finally:
                consoles._stop()
                for program in consoles.programs:
                    program.close()

    def kill_one(self) -> None:
        """The first of them, as if its SSH session had died with the machine; somebody opens it again."""
        self._to_kill.set()

    def megabytes(self) -> float:
        """Of those that nobody kills. One that has just ended by itself has none, and is counted elsewhere."""
        held = 0.0
        for program in self.programs[KILLED + 1 :]:
            with suppress(OSError):
                held += private_megabytes(program.pid)
        return held

    def problems(self) -> list[str]:
        """What is wrong with them in the end. Nobody walks any more then."""
        was_walking = self._reading is not None and self._reading.is_alive()
        self._stop()
        away = sum(not self._is_connected(program) for program in self.programs)
        wrong = {
            "nobody read the consoles any more": not was_walking,
            f"{self.ended} consoles ended by themselves": self.ended > 0,
            f"{away} consoles were not connected in the end": away > 0,
        }
        return [sentence for sentence, is_so in wrong.items() if is_so]

    def _stop(self) -> None:
        self._stopped.set()
        if self._reading is not None:
            self._reading.join()

    def _is_connected(self, program: PtyProgram) -> bool:
        """By what it paints when its window changes: what it had painted before was not kept."""
        program.resize(LINES - 1)
        while program.next_bytes(1.0):
            continue
        program.forget()
        program.resize(LINES)
        deadline = time.monotonic() + CONNECTED_SECONDS
        while time.monotonic() < deadline:
            program.next_bytes(0.5)
            if program.shows("✓ connected"):
                return True
        print(f"a console is not connected:\n{program.screen()}", flush=True)
        return False

    def _started(self, place: int) -> PtyProgram:
        folder = self.home / str(place)
        folder.mkdir(exist_ok=True)
        environment = {
            "HOME": str(folder),
            "AGENT_CONSOLE_DATA": str(folder / "data"),
            "AGENT_CONSOLE_TOKEN": self.stage.decider,
        }
        return PtyProgram([sys.executable, "-m", "agent_console", "--url", self.stage.address], environment)

    def _walk(self) -> None:
        keys = [cycle(WALK[place % len(WALK) :] + WALK[: place % len(WALK)]) for place in range(self.count)]
        due = [time.monotonic() + STEP_SECONDS * place / self.count for place in range(self.count)]
        while not self._stopped.is_set():
            if self._to_kill.is_set():
                self._to_kill.clear()
                self._kill(KILLED)
            for place, program in enumerate(self.programs):
                if not program.is_running:
                    self.ended += 1
                    while said := program.next_bytes(0.0):
                        print(f"a console ended: {said[-500:].decode(errors='replace')!r}", flush=True)
                    program.close()
                    self.programs[place] = self._started(place)
                    continue
                if time.monotonic() >= due[place]:
                    with suppress(OSError):
                        program.press(next(keys[place]))
                    due[place] += STEP_SECONDS
                while program.next_bytes(0.0):
                    pass
                program.forget()
            self._stopped.wait(READ_SECONDS)

    def _kill(self, place: int) -> None:
        os.kill(self.programs[place].pid, signal.SIGKILL)
        self.programs[place].close()
        self.programs[place] = self._started(place)
