"""Locks on files that the kernel gives back the moment their holder dies, however it dies."""

import fcntl
import os
import time
from pathlib import Path
from types import TracebackType
from typing import Self

POLL_SECONDS = 0.02


class FileLock:
    """One open file that can be locked, shared or alone.

    The lock belongs to the open file, not to the process: two locks in one process exclude each other, and a
    program started with `descriptor` among its inherited files keeps the lock after this one is closed.
    Therefore a lock is given back by closing the file only, never by unlocking it.
    """

    def __init__(self, path: Path) -> None:
        self.held = False
        self._open = True
        self.descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)

    def take_now(self, *, shared: bool = False) -> bool:
        """Take the lock if nobody is in the way. Failing to make a shared lock one's own loses it."""
        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        try:
            fcntl.flock(self.descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            self.held = False
        else:
            self.held = True
        return self.held

    def take(self, seconds: float, *, shared: bool = False) -> bool:
        """Wait for the lock, but never without an end: a stopped program may hold it for days."""
        deadline = time.monotonic() + seconds
        while not self.take_now(shared=shared):
            if time.monotonic() >= deadline:
                return False
            time.sleep(POLL_SECONDS)
        return True

    def release(self) -> None:
        if self._open:
            self._open = self.held = False
            os.close(self.descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()
