"""A frame goes to the terminal before anything else is worked out, unless the terminal takes nothing."""

import os
from io import TextIOWrapper
from time import monotonic

from textual.drivers._writer_thread import WriterThread

from agent_console.tui.terminal.driver import HANDED_OVER_SECONDS, HANDED_OVER_TRIES, ConsoleDriver
from agent_console.tui.terminal.terminal_app import TerminalApp

WAITED_AT_MOST = HANDED_OVER_SECONDS * HANDED_OVER_TRIES


def driver_writing_to(end: int) -> tuple[ConsoleDriver, WriterThread]:
    """A driver in front of a thread that is not under way yet."""
    driver = ConsoleDriver(TerminalApp())
    writer = WriterThread(TextIOWrapper(os.fdopen(end, "wb")))
    driver._writer_thread = writer
    return driver, writer


async def test_a_frame_that_nobody_has_taken_is_waited_for_but_not_for_ever() -> None:
    reading, writing = os.pipe()
    driver, writer = driver_writing_to(writing)
    driver.write("a frame")

    began = monotonic()
    driver.flush()
    waited = monotonic() - began

    assert waited >= WAITED_AT_MOST, "whoever painted went on, and the frame had to wait for that"
    writer.start()
    writer.stop()
    assert os.read(reading, 100) == b"a frame"
    os.close(reading)
