"""How the frozen parts of a matrix read: names beside the rows, names above the columns, flat or upright."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rich.cells import cell_len
from textual.content import Content

from agent_console.tui.agent_text import system_text
from agent_console.tui.widgets.matrix_shape import GUTTER, Shape
from agent_console.tui.widgets.virtual_table_lines import CURSOR_GLYPH, fit

HERE = "bold underline"
ELSEWHERE = "$foreground-muted"
FLAT_CORNER = "from ↓  to →"
CORNER = ("to →", "from ↓")
NUMBER = re.compile(r"[0-9][0-9A-Za-z]*$")


def name_text(name: Content, here: bool, shape: Shape) -> Content:
    glyph = system_text(CURSOR_GLYPH if here else "")
    shown = fit(name, shape.names)
    return glyph.pad_right(GUTTER - glyph.cell_length) + (shown.stylize("bold") if here else shown).pad_right(1)


def corner_text(y: int, shape: Shape) -> Content:
    """Which side asks and which is asked, where the two headers meet."""
    first = shape.header - len(CORNER)
    words = FLAT_CORNER if shape.is_flat else CORNER[y - first] if y >= first else ""
    return fit(system_text(words, ELSEWHERE).pad_left(GUTTER), shape.left)


def upright_name(name: Content, here: bool, shape: Shape) -> tuple[Content, ...]:
    """A column's name on as many lines as the header has: flat on one, or read from top to bottom."""
    style = HERE if here else ELSEWHERE
    if shape.is_flat:
        return (fit(name, shape.column - 1).stylize(style).pad_right(1),)
    letters = list(_letters(name))
    if len(letters) > shape.header:
        number = min(_number_letters(name.plain), shape.header - 2)
        begin = shape.header - 1 - number
        letters = [*letters[:begin], system_text("…"), *letters[len(letters) - number :]]
    blank = [system_text("")] * (shape.header - len(letters))
    return tuple(
        letter.stylize(style).pad_right(max(0, shape.column - letter.cell_length)) for letter in blank + letters
    )


def _number_letters(name: str) -> int:
    """How long the number is that tells an agent from the others of its fleet: crawler-07, worker-7f3a."""
    found = NUMBER.search(name)
    return 0 if found is None else len(found.group())


def _letters(name: Content) -> Iterator[Content]:
    """Characters with the marks that sit on them: none of them may begin a line of its own."""
    begin = 0
    for end in range(1, len(name) + 1):
        if end == len(name) or cell_len(name.plain[end]):
            yield name[begin:end]
            begin = end
