"""A fact sheet: what is known of one thing, label by label.

Only labels stand at the left edge. A value that needs more lines goes on below itself, and what others wrote
at length stands behind a bar, so that no words of theirs can pass for a label of ours.
"""

from dataclasses import dataclass
from typing import Protocol

from textual.content import Content

from agent_console.tui.agent_text import system_text

LABEL_CELLS = 15
LEAST_CELLS = 10
BAR = "│ "


class SheetPart(Protocol):
    def lines(self, width: int) -> list[Content]: ...


@dataclass(frozen=True)
class Fact:
    label: str
    value: Content

    def lines(self, width: int) -> list[Content]:
        first, *more = _wrapped(self.value, width - LABEL_CELLS)
        label = system_text(self.label.ljust(LABEL_CELLS), "$foreground-muted")
        return [label + first, *(line.pad_left(LABEL_CELLS) for line in more)]


@dataclass(frozen=True)
class Heading:
    text: Content

    def lines(self, width: int) -> list[Content]:
        return _wrapped(self.text, width)


@dataclass(frozen=True)
class Quote:
    """Words of others, as many lines as they have."""

    text: Content

    def lines(self, width: int) -> list[Content]:
        bar = system_text(BAR, "$foreground-muted")
        return [bar + line for line in _wrapped(self.text, width - len(BAR))]


@dataclass(frozen=True)
class FactSheet:
    parts: tuple[SheetPart, ...] = ()

    def laid_out(self, width: int) -> Content:
        """The sheet in lines of at most this many cells, with a blank line before every further heading."""
        lines: list[Content] = []
        for part in self.parts:
            if isinstance(part, Heading) and lines:
                lines.append(system_text(""))
            lines += part.lines(width)
        return system_text("\n").join(lines)


def _wrapped(text: Content, width: int) -> list[Content]:
    return text.wrap(max(LEAST_CELLS, width)) or [system_text("")]
