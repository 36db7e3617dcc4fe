"""What the command line prints: data on stdout as a table, as JSON or as bare ids; narration on stderr.

No colour, no cut cells and no other looks unless a person is watching; and nothing in a table or an id that
has not passed the gate. Rows are pydantic models or plain mappings; neither pydantic nor textual is imported.
"""

import json
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Generic, Literal, Protocol, TextIO, TypeAlias, TypeVar

import typer
from wcwidth import wcswidth, wcwidth

from agent_console.domain.errors import Invalid
from agent_console.domain.safe_text import SafeText, safe_block, safe_text


class OutputForm(StrEnum):
    TABLE = "table"
    JSON = "json"
    IDS = "ids"


OUTPUT = typer.Option(
    "--output", "-o", help="table for people, json for programs, ids for pipes.", metavar="table|json|ids"
)
WHOLE_OUTPUT = typer.Option("--output", "-o", help="table for people, json for programs.", metavar="table|json")
"""For what has no ids."""


def refuse_ids(form: OutputForm) -> None:
    """For answers that have none."""
    if form is OutputForm.IDS:
        raise Invalid("There are no ids in this answer.", hint="Use -o json.")


class Dumps(Protocol):
    """A pydantic model, as far as this module needs to know."""

    def model_dump(self, *, mode: str) -> dict[str, object]: ...


Row: TypeAlias = Dumps | Mapping[str, object]
AnyRow = TypeVar("AnyRow", bound=Row)

_GAP = "  "
_NARROWEST = 4
# In a pipe nothing is cut; but one cell of a megabyte must not pad every other row to a megabyte.
_WIDEST_PADDING = 120
# A cell of a terminal holds one character and its marks; reading further than this can't change the screen.
_CHARACTERS_PER_CELL = 8


@dataclass(frozen=True)
class TableColumn(Generic[AnyRow]):
    title: str
    value: Callable[[AnyRow], str]
    align: Literal["left", "right"] = "left"


def emit(
    rows: Sequence[AnyRow],
    columns: Sequence[TableColumn[AnyRow]],
    form: OutputForm,
    *,
    next_page: str | None = None,
    stdout: TextIO | None = None,
    stderr: TextIO | None = None,
) -> None:
    """Print one page. `next_page` is what `--after` takes to get the next one, None at the end."""
    out = stdout or sys.stdout
    if form is OutputForm.JSON:
        write(out, _document([_dumped(row) for row in rows]))
    elif form is OutputForm.IDS:
        write(out, "".join(f"{_id_of(row)}\n" for row in rows))
    else:
        write(out, _table(rows, columns, _screen_width(out), bold=_wants_colour(out)))
    if form is OutputForm.TABLE and not rows:
        narrate("Nothing found.", stderr)
    if next_page is not None:
        narrate(f"There are more rows. Get them with: --after {next_page}", stderr)


def emit_one(
    row: AnyRow,
    fields: Sequence[TableColumn[AnyRow]],
    form: OutputForm,
    *,
    stdout: TextIO | None = None,
) -> None:
    """Print one thing: its fields below each other, as one JSON object, or its id."""
    out = stdout or sys.stdout
    if form is OutputForm.JSON:
        write(out, _document(_dumped(row)))
    elif form is OutputForm.IDS:
        write(out, f"{_id_of(row)}\n")
    else:
        write(out, _details(row, fields))


def narrate(sentence: str, stderr: TextIO | None = None) -> None:
    """Tell the person, and only the person, what happened or what to do next."""
    write(stderr or sys.stderr, f"{safe_text(sentence)}\n")


def whisper(sentence: str) -> None:
    """What happens on the way is for a person who waits, not for a pipe."""
    if sys.stderr.isatty():
        narrate(sentence)


def silence(sentence: str) -> None:
    """What happens on the way is for nobody."""


def progress(words: str) -> None:
    """One line that is written over again, for a person who watches; no words take it away."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{words}")
        sys.stderr.flush()


def _document(value: object) -> str:
    json_value = _numbers_as_json(value)
    return json.dumps(json_value, indent=2, ensure_ascii=True, allow_nan=False, default=_json_form) + "\n"


def _numbers_as_json(value: object) -> object:
    """JSON has no NaN and no infinity; what can't be said is null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _numbers_as_json(item) for key, item in value.items()}
    return [_numbers_as_json(item) for item in value] if isinstance(value, list | tuple) else value


def _json_form(value: object) -> str:
    if isinstance(value, datetime):
        from agent_console.domain.records import shown_time

        return shown_time(value)
    return str(value)


def _dumped(row: Row) -> dict[str, object]:
    return dict(row) if isinstance(row, Mapping) else row.model_dump(mode="json")


def _id_of(row: Row) -> SafeText:
    return safe_text(str(_dumped(row)["id"]))


def _details(row: AnyRow, fields: Sequence[TableColumn[AnyRow]]) -> str:
    titles = [safe_text(field.title) for field in fields]
    indent = max(map(_cells, titles), default=0)
    lines: list[str] = []
    for title, field in zip(titles, fields, strict=True):
        first, *others = safe_block(field.value(row))
        lines.append(f"{_padded(title, indent, 'left')}{_GAP}{first}".rstrip())
        lines += [f"{' ' * indent}{_GAP}{line}".rstrip() for line in others]
    return "".join(f"{line}\n" for line in lines)


def _table(
    rows: Sequence[AnyRow], columns: Sequence[TableColumn[AnyRow]], screen: int | None, *, bold: bool
) -> str:
    grid: list[list[str]] = [[safe_text(column.title.upper()) for column in columns]]
    grid += ([_cell(column.value(row), screen) for column in columns] for row in rows)
    widths = _widths(grid, screen)
    aligns = [column.align for column in columns]
    header, *lines = (_line(cells, widths, aligns, screen) for cells in grid)
    if bold:
        header = f"\x1b[1m{header}\x1b[0m"
    return "".join(f"{line}\n" for line in [header, *lines])


def _cell(text: str, screen: int | None) -> str:
    if screen is None or len(text) <= screen * _CHARACTERS_PER_CELL:
        return safe_text(text)
    return safe_text(text[: screen * _CHARACTERS_PER_CELL]) + "…"


def _widths(grid: Sequence[Sequence[str]], screen: int | None) -> list[int]:
    widths = [min(max(map(_cells, column)), screen or _WIDEST_PADDING) for column in zip(*grid, strict=True)]
    if screen is None:
        return widths
    room = screen - len(_GAP) * (len(widths) - 1)
    while sum(widths) > room and max(widths) > _NARROWEST:
        widths[widths.index(max(widths))] -= 1
    return widths


def _line(cells: Sequence[str], widths: Sequence[int], aligns: Sequence[str], screen: int | None) -> str:
    shown = cells if screen is None else [_cut(cell, width) for cell, width in zip(cells, widths, strict=True)]
    line = _GAP.join(map(_padded, shown, widths, aligns)).rstrip(" ")
    return line if screen is None else _cut(line, screen)


def _padded(text: str, width: int, align: str) -> str:
    blank = " " * (width - _cells(text))
    return blank + text if align == "right" else text + blank


def _cut(text: str, width: int) -> str:
    if _cells(text) <= width:
        return text
    used = 0
    for index, char in enumerate(text):
        used += max(wcwidth(char), 0)
        if used > width - 1:
            return text[:index] + "…"
    return text


def _cells(text: str) -> int:
    return len(text) if text.isascii() else max(wcswidth(text), 0)


def _screen_width(stream: TextIO) -> int | None:
    """How wide the terminal is; None where nobody looks, so that nothing is cut."""
    if not stream.isatty():
        return None
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns) > 0:
        return int(columns)
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except OSError:
        return 80


def _wants_colour(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def write(stream: TextIO, text: str) -> None:
    """What the stream has no character for is escaped."""
    encoding = stream.encoding or "utf-8"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
    stream.flush()
