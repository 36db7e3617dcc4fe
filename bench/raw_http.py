"""A load tool: plain connections that ask and read answers, at next to no cost to the machine they share."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Self

WARM_UP_SECONDS = 0.5


@dataclass
class RawConnection:
    """One connection that is kept; one question at a time."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    head: str

    @classmethod
    async def to(cls, address: str, key: str | None = None) -> Self:
        host, _, port = address.removeprefix("http://").rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        bearer = "" if key is None else f"Authorization: Bearer {key}\r\n"
        return cls(reader, writer, f"Host: {host}\r\n{bearer}")

    async def ask(self, verb: str, path: str, body: bytes = b"") -> bytes:
        described = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n" if body else ""
        self.writer.write(f"{verb} {path} HTTP/1.1\r\n{self.head}{described}\r\n".encode() + body)
        head = (await self.reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
        answer = await self.reader.readexactly(length)
        assert head[9:10] == b"2", head + answer
        return answer

    def close(self) -> None:
        self.writer.close()


class Asking(asyncio.Protocol):
    """Asks the same again as soon as it is answered, and counts."""

    def __init__(self, question: bytes) -> None:
        self.question = question
        self.answers = 0
        self._missing = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(self.question)

    def data_received(self, data: bytes) -> None:
        if self._missing == 0:
            head, _, begun = data.partition(b"\r\n\r\n")
            assert head[9:12] == b"200", data
            length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
            self._missing = length - len(begun)
        else:
            self._missing -= len(data)
        if self._missing == 0:
            self.answers += 1
            self._transport.write(self.question)


async def answers_per_second(address: str, path: str, keys: Sequence[str | None], seconds: float) -> float:
    """With a caller for each key, each waiting for its answer before it asks again."""
    host, _, port = address.removeprefix("http://").rpartition(":")
    loop, connections = asyncio.get_running_loop(), []
    for key in keys:
        bearer = "" if key is None else f"Authorization: Bearer {key}\r\n"
        asking = Asking(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n{bearer}\r\n".encode())
        connections.append(await loop.create_connection(partial(_same, asking), host, int(port)))
    await asyncio.sleep(WARM_UP_SECONDS)
    before, began = sum(asking.answers for _, asking in connections), time.perf_counter()
    await asyncio.sleep(seconds)
    done, spent = sum(asking.answers for _, asking in connections) - before, time.perf_counter() - began
    for transport, _ in connections:
        transport.abort()
    return done / spent


def processor_microseconds(pid: int) -> float:
    """What a process has used of the processors so far."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1000


def _same(asking: Asking) -> Asking:
    return asking
