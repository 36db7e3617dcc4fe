"""Writes the cells that differ, with as few cursor moves and colour changes as that takes."""

from agent_console.tui.terminal.cells import Cell, Row
from agent_console.tui.terminal.looks import DEFAULT_BACKGROUND, PLAIN, Look, change, with_background_only

# Below these lengths writing the spaces is no longer than erasing them and moving on.
SHORTEST_ERASED_RUN = 12
SHORTEST_ERASED_TAIL = 4
LONGEST_REWRITTEN_GAP = 4

# Wide since the first tables of widths: every terminal gives these two cells. About emoji they disagree.
_WIDE_EVERYWHERE = ((0x1100, 0x115F), (0x2E80, 0xA4CF), (0xAC00, 0xD7A3), (0xF900, 0xFAFF), (0xFF00, 0xFFE6))


def _advances_surely(cell: Cell) -> bool:
    """True when every terminal moves its cursor by the cell's width; otherwise the cursor is placed anew."""
    if cell.glyph.isascii():
        return True
    if len(cell.glyph) > 1:
        return False
    code = ord(cell.glyph)
    if cell.width == 1:
        return code < 0x1F000
    return any(first <= code <= last for first, last in _WIDE_EVERYWHERE)


def _whole(row: Row, x: int) -> tuple[int, Cell]:
    """The character the cell belongs to, and where it starts."""
    cell = row[x]
    if cell is not None and cell.width == 0:
        x, cell = x - 1, row[x - 1]
    if cell is None:
        raise ValueError("half of a wide character without the other")
    return x, cell


def _end_of_alike(cell: Cell, x: int, row: Row, changed: list[int], number: int) -> int:
    """Up to where cells that change follow each other without a gap and are drawn with one pen, each one wide."""
    look, is_space = cell.look, cell.glyph == " "
    end = x
    for place in changed[number:]:
        following = row[place]
        if place != end or following is None or following.look != look or following.width != 1:
            break
        if (following.glyph == " ") != is_space or not _advances_surely(following):
            break
        end += 1
    return end


class Painter:
    """Collects the bytes of one frame.

    `pen` is how the terminal draws now, None when unknown. `erase_keeps_background` tells whether erased
    cells take the pen's background (terminfo's bce); where they don't, coloured blanks are written as
    spaces.
    """

    def __init__(self, pen: Look | None, *, erase_keeps_background: bool) -> None:
        self._out: list[str] = []
        self._pen = pen
        self._erase_keeps_background = erase_keeps_background
        self._y: int | None = None
        self._x: int | None = None

    def finished(self) -> str:
        """The frame; the pen is plain after it, whoever writes next."""
        if self._out:
            self._out.append(change(self._pen, PLAIN))
        return "".join(self._out)

    def paint_row(self, y: int, old: Row, new: Row) -> None:
        changed = [
            x
            for x, (cell, was) in enumerate(zip(new, old, strict=True))
            if cell is not was and cell is not None and cell != was
        ]
        tail = self._start_of_blank_tail(new)
        done = 0
        for number, place in enumerate(changed):
            if place < done:
                continue
            x, cell = _whole(new, place)
            self._go(x, y, new)
            if not cell.is_blank:
                done = self._write(cell, x, new, changed, number)
                continue
            if x >= tail and changed[-1] - x >= SHORTEST_ERASED_TAIL:
                self._erase(cell, "\x1b[K")
                return
            run = self._blank_run(x, new, changed[-1])
            if run >= SHORTEST_ERASED_RUN:
                self._erase(cell, f"\x1b[{run}X")
                done = x + run
            else:
                done = self._write(cell, x, new, changed, number)

    def _can_erase(self, cell: Cell) -> bool:
        return cell.is_blank and (self._erase_keeps_background or cell.look.background == DEFAULT_BACKGROUND)

    def _start_of_blank_tail(self, row: Row) -> int:
        last = row[-1]
        if last is None or not self._can_erase(last):
            return len(row)
        start = len(row)
        while start and row[start - 1] == last:
            start -= 1
        return start

    def _blank_run(self, x: int, row: Row, last: int) -> int:
        first = row[x]
        if first is None or not self._can_erase(first):
            return 0
        end = x
        while end <= last and row[end] == first:
            end += 1
        return end - x

    def _go(self, x: int, y: int, row: Row) -> None:
        if y != self._y:
            self._out.append(f"\x1b[{y + 1}H" if x == 0 else f"\x1b[{y + 1};{x + 1}H")
        elif self._x is None or x < self._x:
            self._out.append(f"\x1b[{x + 1}G")
        elif x > self._x and not self._rewrite_gap(x, row):
            self._out.append("\x1b[C" if x == self._x + 1 else f"\x1b[{x - self._x}C")
        self._x, self._y = x, y

    def _rewrite_gap(self, x: int, row: Row) -> bool:
        """Cross a few cells by writing again what they show, when that needs no other pen."""
        if self._x is None or x - self._x > LONGEST_REWRITTEN_GAP:
            return False
        gap = row[self._x : x]
        if not all(
            cell and cell.glyph.isascii() and cell.glyph and self._pen_for(cell) == self._pen for cell in gap
        ):
            return False
        self._out.extend(cell.glyph for cell in gap if cell)
        return True

    def _pen_for(self, cell: Cell) -> Look:
        if cell.is_blank and self._pen is not None:
            return with_background_only(self._pen, cell.look.background)
        return cell.look

    def _take_pen_for(self, cell: Cell) -> None:
        pen = self._pen_for(cell)
        self._out.append(change(self._pen, pen))
        self._pen = pen

    def _erase(self, cell: Cell, sequence: str) -> None:
        self._take_pen_for(cell)
        self._out.append(sequence)

    def _write(self, cell: Cell, x: int, row: Row, changed: list[int], number: int) -> int:
        """Write the cell, and with it those that change behind it and look the same. Says where that ends."""
        self._take_pen_for(cell)
        if not _advances_surely(cell):
            self._out.append(cell.glyph)
            self._x = None
            return x + cell.width
        end = x + cell.width
        if cell.width == 1:
            end = _end_of_alike(cell, x, row, changed, number)
            self._out.append("".join([alike.glyph for alike in row[x:end] if alike]))
        else:
            self._out.append(cell.glyph)
        # In the last column the cursor stays where it is, or hangs over the edge: terminals disagree.
        self._x = None if end >= len(row) else end
        return end
