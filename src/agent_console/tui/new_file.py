"""A file that was not there before: readable by its owner alone, and never half there by its own name."""

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO, TypeVar

Result = TypeVar("Result")

PART = ".part"
FOLDER_SET_BY = "AGENT_CONSOLE_EXPORTS"
TRIES = 1000


def exports_folder() -> Path:
    return Path(os.environ.get(FOLDER_SET_BY) or ".")


def folder_words(folder: Path) -> str:
    """A dot is a name for programs."""
    return "the current folder" if folder == Path() else str(folder)


def unused_name(folder: Path, stem: str, suffix: str) -> Path:
    """The first name that nothing has, whether whole or half written."""
    names = (f"{stem}{'' if number == 1 else f'-{number}'}.{suffix}" for number in range(1, TRIES))
    free = (folder / name for name in names if not _is_taken(folder / name))
    found = next(free, None)
    if found is None:
        raise FileExistsError(f"every name like {stem}.{suffix} is taken")
    return found


def _is_taken(path: Path) -> bool:
    return os.path.lexists(path) or os.path.lexists(f"{path}{PART}")


@dataclass
class NewFile:
    """While it is written its name ends in .part; `keep` gives it its own name, `drop` removes it."""

    path: Path
    _out: TextIO

    @classmethod
    def begin(cls, path: Path) -> "NewFile":
        descriptor = os.open(f"{path}{PART}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        return cls(path, os.fdopen(descriptor, "w", encoding="utf-8", newline=""))

    @property
    def _part(self) -> Path:
        return Path(f"{self.path}{PART}")

    def write(self, text: str) -> None:
        self._out.write(text)

    def keep(self) -> None:
        """Its name is taken first, by us alone, so that what takes its place is nobody else's file."""
        self._out.flush()
        os.fsync(self._out.fileno())
        self._out.close()
        os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        try:
            self._part.replace(self.path)
        except OSError:
            self.path.unlink(missing_ok=True)
            raise

    def drop(self) -> None:
        # What can't be written out any more is dropped all the same.
        with suppress(OSError):
            self._out.close()
        with suppress(FileNotFoundError):
            self._part.unlink()


async def to_its_end(
    step: Callable[..., Result], *given: object, undo: Callable[[Result], None] | None = None
) -> Result:
    """Off the event loop. A thread can't be stopped: who is cancelled meanwhile waits for it, and undoes it."""
    working = asyncio.ensure_future(asyncio.to_thread(step, *given))
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        await asyncio.wait({working})
        if undo is not None and working.exception() is None:
            undo(working.result())
        raise
