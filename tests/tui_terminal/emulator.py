"""A terminal to look at: pyte, made to treat halves of wide characters as real terminals do."""

from typing import TypeAlias

import pyte
from pyte.screens import Char

Seen: TypeAlias = list[list[Char]]


class Emulator(pyte.Screen):
    """Writing on half of a wide character leaves a blank where the other half was."""

    def draw(self, data: str) -> None:
        # One by one is slow, and only needed where wide characters are or come to be.
        if data.isascii() and not any(cell.data == "" for cell in self.buffer[self.cursor.y].values()):
            super().draw(data)
            return
        for character in data:
            x, y = min(self.cursor.x, self.columns - 1), self.cursor.y
            self._blank_other_halves(x, y)
            super().draw(character)
            if self.cursor.x > x + 1:
                self._blank_orphan(x + 2, y)

    def erase_characters(self, count: int | None = None) -> None:
        self._blank_other_halves(self.cursor.x, self.cursor.y)
        super().erase_characters(count)
        self._blank_orphan(self.cursor.x + (count or 1), self.cursor.y)

    def erase_in_line(self, how: int = 0, private: bool = False) -> None:
        self._blank_other_halves(self.cursor.x, self.cursor.y)
        super().erase_in_line(how, private)

    def _blank_other_halves(self, x: int, y: int) -> None:
        row = self.buffer[y]
        if row[x].data == "" and x:
            row[x - 1] = row[x - 1]._replace(data=" ")
        self._blank_orphan(x + 1, y)

    def _blank_orphan(self, x: int, y: int) -> None:
        row = self.buffer[y]
        if x < self.columns and row[x].data == "":
            row[x] = row[x]._replace(data=" ")

    def seen(self) -> Seen:
        """What a person can see: of a space only its background, unless something is drawn on it."""
        return [[as_seen(self.buffer[y][x]) for x in range(self.columns)] for y in range(self.lines)]

    def text(self) -> list[str]:
        return ["".join(self.buffer[y][x].data for x in range(self.columns)) for y in range(self.lines)]


def as_seen(cell: Char) -> Char:
    if cell.data == " " and not (cell.underscore or cell.strikethrough or cell.reverse):
        return Char(" ", bg=cell.bg)
    return cell


def terminal(columns: int, lines: int) -> tuple[Emulator, pyte.Stream]:
    screen = Emulator(columns, lines)
    stream = pyte.Stream(screen)
    # Textual turns automatic wrapping off before it draws.
    stream.feed("\x1b[?7l")
    return screen, stream
