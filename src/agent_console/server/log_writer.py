"""Writing log lines without ever waiting for whoever reads them."""

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from queue import Empty, Full, Queue

MOST_WAITING = 10_000
LAST_WORDS_SECONDS = 1.0


class LogWriter:
    """Writes lines in a thread of its own. When too many wait they are dropped, and their number is told later:
    a pipe that nobody empties must not stop the server."""

    def __init__(self, descriptor: int, *, most_waiting: int = MOST_WAITING) -> None:
        self._descriptor = descriptor
        self._waiting: Queue[str | None] = Queue(most_waiting)
        self._dropped = 0
        self._thread = threading.Thread(target=self._work, daemon=True, name="log-writer")
        self._thread.start()

    def __call__(self, line: str) -> None:
        try:
            self._waiting.put_nowait(line)
        except Full:
            self._dropped += 1

    def close(self) -> None:
        """Write what still waits, as far as somebody takes it."""
        try:
            self._waiting.put(None, timeout=LAST_WORDS_SECONDS)
        except Full:
            return
        self._thread.join(LAST_WORDS_SECONDS)

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def _work(self) -> None:
        while (line := self._waiting.get()) is not None:
            lines, ended = self._together(line)
            if self._dropped:
                lines.append(json.dumps({"lines_dropped": self._dropped}))
                self._dropped = 0
            self._write("".join(f"{line}\n" for line in lines))
            if ended:
                return

    def _together(self, first: str) -> tuple[list[str], bool]:
        """This line and those that came meanwhile, and whether they are the last."""
        lines = [first]
        while len(lines) < MOST_WAITING:
            try:
                line = self._waiting.get_nowait()
            except Empty:
                break
            if line is None:
                return lines, True
            lines.append(line)
        return lines, False

    def _write(self, text: str) -> None:
        """Past Python's own files: one that a blocked thread holds would keep the program from ending."""
        left = text.encode()
        # Whoever reads the log may go; the server stays.
        with suppress(OSError):
            while left:
                left = left[os.write(self._descriptor, left) :]


@contextmanager
def written_to(descriptor: int) -> Iterator[LogWriter]:
    writer = LogWriter(descriptor)
    try:
        yield writer
    finally:
        writer.close()
