"""What a terminal was sent, judged byte by byte: our own sequences, and otherwise text that is fit to be read."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tests.attacks.hostile_strings import dangers

SEQUENCE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI
    r"|\x1b[\]PX^_][^\x1b\x07\x9c]*(?:\x07|\x1b\\|\x9c)?"  # OSC, DCS, SOS, PM, APC, however they end
    r"|\x1b.?"
    r"|[\x00-\x1f\x7f-\x9f]",
    re.DOTALL,
)
COLOUR = re.compile(r"[34]8;(?:5;\d+|2;\d+;\d+;\d+)")
# Neither hidden nor blinking: what is written is seen, and stays.
LOOKS = {*map(str, range(5)), "7", "9", "", *("22", "23", "24", "27", "29"), *map(str, range(30, 50))} | {
    *map(str, range(90, 108))
}
DRAWING = {"\x1b[;H", "\x1b[H", "\x1b[G", "\x1b[C", "\x1b[X", "\x1b[K"}
BRACKETS = {"\x1b[?2026h", "\x1b[?2026l", "\x1b[?25h", "\x1b[?25l"}


@dataclass(frozen=True)
class Found:
    at: int
    what: str


def is_ours(sequence: str) -> bool:
    """Moving, erasing, colouring, and the brackets around a frame: all that drawing needs."""
    if sequence in BRACKETS:
        return True
    if sequence.startswith("\x1b[") and sequence.endswith("m"):
        return set(COLOUR.sub("", sequence[2:-1]).split(";")) <= LOOKS
    return re.sub(r"\d+", "", sequence) in DRAWING


def strange(text: str) -> Iterator[Found]:
    """Everything that is neither a sequence of ours nor harmless text."""
    end = 0
    for match in SEQUENCE.finditer(text):
        yield from (Found(end, danger) for danger in dangers(text[end : match.start()]))
        if not is_ours(match[0]):
            yield Found(match.start(), match[0][:80])
        end = match.end()
    yield from (Found(end, danger) for danger in dangers(text[end:]))
