"""The way one came, one step after the other; where it is too long, how it began is left out."""

from collections.abc import Sequence

from textual.content import Content
from textual.widget import Widget

from agent_console.tui.agent_text import agent_text, system_text

CRUMB_CHARACTERS = 40
WORTH_TELLING = 3
"""A pane and one step from it is what the heading says too."""


def way_text(crumbs: Sequence[str], width: int) -> Content:
    """The last crumb is where one is: it is the one that must be seen."""
    separator = system_text(" › ", "$foreground-muted")
    shown = [agent_text(crumb, limit=CRUMB_CHARACTERS) for crumb in crumbs]
    line = separator.join(shown)
    while line.cell_length > width and len(shown) > 1:
        del shown[0]
        line = separator.join([system_text("…", "$foreground-muted"), *shown])
    return line.truncate(max(0, width), ellipsis=True)


class WayLine(Widget):
    DEFAULT_CSS = "WayLine { height: 1; padding: 0 1; background: $surface; display: none; }"

    def __init__(self) -> None:
        super().__init__()
        self._crumbs: tuple[str, ...] = ()

    def show(self, crumbs: tuple[str, ...]) -> None:
        self.display = len(crumbs) >= WORTH_TELLING
        if crumbs != self._crumbs:
            self._crumbs = crumbs
            self.refresh()

    def render(self) -> Content:
        return way_text(self._crumbs, self.size.width)
