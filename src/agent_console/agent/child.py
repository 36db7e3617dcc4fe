"""A program in a process group of its own: started, read, asked to end, and never left behind."""

import asyncio
import os
import signal
import tempfile
from asyncio.subprocess import Process
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import BinaryIO

READ_BYTES = 65_536
# Whoever still holds the pipe after the whole group was killed has left the group, and is not waited for.
PIPE_SECONDS = 1.0
REAPING_TRIES = 50


@dataclass(frozen=True)
class Pipe:
    """The reading end of a pipe, and the writing end that the child gets."""

    reader: asyncio.StreamReader
    transport: asyncio.ReadTransport
    writing: int


class Child:
    """Its leader's id is the id of its group."""

    def __init__(self, process: Process, out: Pipe, err: Pipe) -> None:
        self._process = process
        self._pipes = (out, err)
        self.out, self.err = out.reader, err.reader

    @property
    def group(self) -> int:
        return self._process.pid

    async def wait(self) -> int:
        """The exit code of the leader; negative when a signal ended it."""
        return await self._process.wait()

    def ask_to_end(self) -> None:
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """Everyone in the group, the leader's children too."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.group, number)

    async def bury(self) -> None:
        """Kill what is left of the group and reap all of it."""
        self.kill()
        await self._process.wait()
        for _ in range(REAPING_TRIES):
            if not self._reap():
                return
            await asyncio.sleep(0.01)

    def _reap(self) -> bool:
        """Orphans of the group are ours to reap when this is the first process of a container."""
        try:
            os.waitpid(-self.group, os.WNOHANG)
        except ChildProcessError:
            return False
        return True

    def close(self) -> None:
        for pipe in self._pipes:
            pipe.transport.close()


async def start(words: Sequence[str], environment: Mapping[str, str], given: bytes) -> Child:
    """`given` is what it reads from its standard input. Raises OSError when it can't be started."""
    out, err = await _pipe(), await _pipe()
    try:
        with _file_with(given) as standard_input:
            process = await asyncio.create_subprocess_exec(
                *words,
                stdin=standard_input,
                stdout=out.writing,
                stderr=err.writing,
                env=dict(environment),
                start_new_session=True,
            )
    except BaseException:
        out.transport.close()
        err.transport.close()
        raise
    finally:
        os.close(out.writing)
        os.close(err.writing)
    return Child(process, out, err)


@contextmanager
def _file_with(content: bytes) -> Iterator[BinaryIO]:
    """A file without a name: unlike a pipe it never blocks, whether or not the program reads it."""
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.seek(0)
        yield file


async def _pipe() -> Pipe:
    reading, writing = os.pipe()
    reader = asyncio.StreamReader(limit=READ_BYTES)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(reading, "rb", 0)
    )
    return Pipe(reader, transport, writing)
