"""What the terminal already shows, and the bytes that turn it into what it should show."""

from rich.color import ColorSystem
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.geometry import Size

from agent_console.tui.terminal.cells import Cell, Piece, Row, cell, pieces_of, size_of
from agent_console.tui.terminal.looks import PLAIN
from agent_console.tui.terminal.painter import Painter


class CellDiff:
    """A shadow of the terminal. It is the last guard too: nothing but guarded cells is ever written.

    The shadow is only right as long as nobody else draws: call `forget` whenever the terminal was resized,
    reset, or lent to another program.
    """

    def __init__(self, *, erase_keeps_background: bool) -> None:
        self._erase_keeps_background = erase_keeps_background
        self._size = Size(0, 0)
        self._rows: list[Row] = []
        self._pen_known = False

    def forget(self) -> None:
        """Whatever the terminal shows now, it's not what was written last."""
        self._rows = [_unknown_row(self._size.width) for _ in range(self._size.height)]
        self._pen_known = False

    def shows(self, size: Size) -> bool:
        """Whether something has been drawn on a terminal of that size."""
        return self._pen_known and size == self._size

    def resized(self, size: Size) -> None:
        """The terminal has another size. Also one that comes back at once: shrinking cuts what it showed."""
        if size != self._size:
            self._size = size
            self.forget()

    def difference(self, update: LayoutUpdate | ChopsUpdate, colours: ColorSystem) -> str:
        """The bytes that bring the update to the terminal, which is taken to have received them."""
        self.resized(size_of(update))
        changed: dict[int, Row] = {}
        for piece in pieces_of(update, colours):
            if 0 <= piece.y < self._size.height:
                self._lay(piece, changed)
        painter = Painter(PLAIN if self._pen_known else None, erase_keeps_background=self._erase_keeps_background)
        for y, row in sorted(changed.items()):
            painter.paint_row(y, self._rows[y], row)
            self._rows[y] = row
        frame = painter.finished()
        self._pen_known = self._pen_known or bool(frame)
        return frame

    def _lay(self, piece: Piece, changed: dict[int, Row]) -> None:
        row = changed.get(piece.y, self._rows[piece.y])
        start, end = piece.x, min(piece.x + len(piece.cells), self._size.width)
        cells: Row = list(piece.cells[: end - start])
        if row[start:end] == cells:
            return
        if piece.y not in changed:
            row = changed[piece.y] = row.copy()
        row[start:end] = cells
        for border in {start, end}:
            _mend(row, border)


def _unknown_row(width: int) -> Row:
    return [None] * width


def _mend(row: Row, border: int) -> None:
    """Where the border cuts a wide character in two, a blank stands in for each half, as on the terminal."""
    left = row[border - 1] if border else None
    right = row[border] if border < len(row) else None
    if (left is not None and left.width == 2) == (right is not None and right.width == 0):
        return
    if left is not None and left.width == 2:
        row[border - 1] = _blank_like(left)
    if right is not None and right.width == 0:
        row[border] = _blank_like(right)


def _blank_like(half: Cell) -> Cell:
    return cell(" ", half.look)
