"""Whoever reads the log, slowly or not at all, the server does not wait for them."""

import json
import os

import pytest

from agent_console.server.log_writer import LogWriter
from tests.server.stage import until

LINE = "x" * 1000


@pytest.mark.parametrize(("lines", "most_waiting"), [(20, 100), (5_000, 100)], ids=["few", "more than can wait"])
def test_a_pipe_that_nobody_empties_stops_nobody(lines: int, most_waiting: int) -> None:
    reading, writing = os.pipe()
    writer = LogWriter(writing, most_waiting=most_waiting)
    for number in range(lines):
        writer(f"{number} {LINE}")

    numbers: list[int] = []
    dropped = 0
    with os.fdopen(reading, encoding="utf-8") as reader:
        while len(numbers) + dropped < lines:
            line = reader.readline()
            if line.startswith("{"):
                dropped += json.loads(line)["lines_dropped"]
            else:
                numbers.append(int(line.partition(" ")[0]))
        writer.close()
    os.close(writing)

    assert numbers == sorted(numbers)
    assert numbers[:20] == list(range(20))
    assert (dropped > 0) is (lines > most_waiting)


def test_what_still_waits_is_written_at_the_end() -> None:
    reading, writing = os.pipe()
    writer = LogWriter(writing)
    for number in range(10):
        writer(str(number))
    writer.close()
    os.close(writing)

    with os.fdopen(reading, encoding="utf-8") as reader:
        assert reader.read().split() == [str(number) for number in range(10)]


async def test_a_reader_that_is_gone_stops_nobody() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    writer = LogWriter(writing)
    for _ in range(100):
        writer(LINE)
    writer.close()

    await until(lambda: not writer.is_alive)
    os.close(writing)
