"""The cells of a screen: what stands in each, how it looks, how wide it is."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from rich.color import ColorSystem
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.geometry import Size
from textual.strip import Strip

from agent_console.tui.terminal.hidden_characters import glyphs, is_plain
from agent_console.tui.terminal.looks import Look, blank, is_bare, look_of


class Cell(NamedTuple):
    """One cell. The second cell of a wide character has an empty glyph and no width."""

    glyph: str
    look: Look
    width: int

    @property
    def is_blank(self) -> bool:
        """True for a space of which only the background can be seen."""
        return self.glyph == " " and is_bare(self.look)


Row: TypeAlias = "list[Cell | None]"
"""A row of the shadow; None is a cell of which nobody knows what the terminal shows."""


class Piece(NamedTuple):
    """Cells that belong side by side on one row."""

    x: int
    y: int
    cells: Sequence[Cell]


@lru_cache(maxsize=8192)
def cell(glyph: str, look: Look, width: int = 1) -> Cell:
    return Cell(glyph, blank(look) if glyph == " " else look, width)


# As many words as a full screen has: those that tick by are not looked for again.
@lru_cache(maxsize=1024)
def cells_of(text: str, look: Look) -> tuple[Cell, ...]:
    if is_plain(text):
        return tuple([cell(character, look) for character in text])
    return tuple(
        part
        for glyph, width in glyphs(text)
        for part in ((cell(glyph, look),) if width == 1 else (cell(glyph, look, 2), cell("", look, 0)))
    )


def cells_of_strip(strip: Strip, colours: ColorSystem) -> list[Cell]:
    return [
        part for text, style, control in strip if not control for part in cells_of(text, look_of(style, colours))
    ]


def size_of(update: LayoutUpdate | ChopsUpdate) -> Size:
    """The size of the screen the update was made for."""
    if isinstance(update, LayoutUpdate):
        return Size(update.region.right, update.region.bottom)
    return Size(update.chop_ends[0][-1], len(update.chop_ends))


def pieces_of(update: LayoutUpdate | ChopsUpdate, colours: ColorSystem) -> Iterator[Piece]:
    """What the update puts where, cell for cell what Textual's own rendering of it would."""
    if isinstance(update, LayoutUpdate):
        return _pieces_of_layout(update, colours)
    return _pieces_of_chops(update, colours)


def _pieces_of_layout(update: LayoutUpdate, colours: ColorSystem) -> Iterator[Piece]:
    for y, strips in enumerate(update.strips, update.region.y):
        yield Piece(update.region.x, y, [part for strip in strips for part in cells_of_strip(strip, colours)])


def _pieces_of_chops(update: ChopsUpdate, colours: ColorSystem) -> Iterator[Piece]:
    for y, x1, x2 in update.spans:
        for end, (x, strip) in zip(update.chop_ends[y], update.chops[y].items(), strict=True):
            if strip is None or x > x2 or end <= x1:
                continue
            inside = x1 <= x < x2 and end <= x2
            yield Piece(x, y, cells_of_strip(strip if inside else strip.crop(0, min(end, x2) - x), colours))
