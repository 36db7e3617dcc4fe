"""What a list of items of different heights shows: the items, and the lines they are laid out in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from textual.content import Content


class TallSource(Protocol):
    """A snapshot of items in their order; all calls must be cheap, and only what is on the screen is asked for.

    What an item reads like does not change while it is shown: a changed one is a new source.
    """

    def __len__(self) -> int: ...

    def key_at(self, index: int) -> str: ...

    def index_of(self, key: str) -> int | None: ...

    def lines_at(self, index: int, width: int) -> tuple[Content, ...]:
        """At least one line; the first is what the cursor is shown on."""
        ...

    def height_at(self, index: int, width: int) -> int:
        """How many lines it has; asked for more often than the lines themselves."""
        ...

    def can_hold_cursor(self, index: int) -> bool: ...


class NoItems:
    def __len__(self) -> int:
        return 0

    def key_at(self, index: int) -> str:
        raise IndexError(index)

    def index_of(self, key: str) -> int | None:
        return None

    def lines_at(self, index: int, width: int) -> tuple[Content, ...]:
        raise IndexError(index)

    def height_at(self, index: int, width: int) -> int:
        raise IndexError(index)

    def can_hold_cursor(self, index: int) -> bool:
        return False


@dataclass(frozen=True)
class TallLine:
    text: Content
    key: str | None = None
    cursor: bool = False
    glyph: bool = False

    def reads_like(self, other: TallLine) -> bool:
        mine, others = (self.key, self.cursor, self.glyph), (other.key, other.cursor, other.glyph)
        return mine == others and (self.text is other.text or self.text.is_same(other.text))


BLANK = TallLine(Content.empty())


class LinesOnce:
    """The lines of each item, laid out once: a key that moves the cursor asks for all that are in sight."""

    def __init__(self, source: TallSource, width: int) -> None:
        self.source = source
        self.width = width
        self._lines: dict[int, tuple[Content, ...]] = {}

    def at(self, index: int) -> tuple[Content, ...]:
        if (lines := self._lines.get(index)) is None:
            lines = self._lines[index] = self.source.lines_at(index, self.width)
        return lines
