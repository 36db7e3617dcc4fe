"""Notices that nobody can type any more.

Reading from a line that has hung up gives nothing, at once and for ever, and Textual's input thread would ask
again and again. Usually SIGHUP ends the program; when that is ignored, or goes to somebody else, this does.
"""

import os
import select
import signal
from threading import Event, Timer

MOMENT_FOR_A_SIGNAL = 2.0
"""Seconds. Who is told by SIGHUP ends by that."""

GONE = select.POLLHUP | select.POLLERR | select.POLLNVAL


class EndOfInput(Event):
    """Set by whoever ends the input, and by itself when the line has hung up."""

    def __init__(self, line: int) -> None:
        super().__init__()
        self._line = select.poll()
        self._line.register(line, 0)
        self._end: Timer | None = None

    def is_set(self) -> bool:
        if self._end is None and self._has_hung_up():
            self._end = Timer(MOMENT_FOR_A_SIGNAL, os.kill, (os.getpid(), signal.SIGTERM))
            self._end.daemon = True
            self._end.start()
        return self._end is not None or super().is_set()

    def forget(self) -> None:
        """The program has ended by itself."""
        if self._end is not None:
            self._end.cancel()

    def _has_hung_up(self) -> bool:
        return any(event & GONE for _, event in self._line.poll(0))
