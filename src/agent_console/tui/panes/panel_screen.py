"""A screen that is read through: one panel, and the keys that move it, the same wherever there is one."""

from textual.app import ComposeResult
from textual.binding import Binding

from agent_console.tui.panes.stacked import StackedScreen
from agent_console.tui.panes.surroundings import Surroundings
from agent_console.tui.widgets.detail import DetailPanel

MOVES: dict[str, tuple[str, str]] = {
    "down": ("down,j", "Down"),
    "up": ("up,k", "Up"),
    "page_down": ("pagedown,space", "Page down"),
    "page_up": ("pageup", "Page up"),
    "first": ("home,g", "First"),
    "last": ("end,G", "Last"),
}


def reading_bindings(where: str) -> list[Binding]:
    return [
        Binding(keys, f"read('{move}')", words, show=False, id=f"{where}.{move}")
        for move, (keys, words) in MOVES.items()
    ]


class PanelScreen(StackedScreen):
    def __init__(self, around: Surroundings) -> None:
        super().__init__(around)
        self._panel = DetailPanel(classes="whole")

    def body(self) -> ComposeResult:
        yield self._panel

    def action_read(self, move: str) -> None:
        panel = self._panel
        scroll = {
            "down": panel.scroll_down,
            "up": panel.scroll_up,
            "page_down": panel.scroll_page_down,
            "page_up": panel.scroll_page_up,
            "first": panel.scroll_home,
            "last": panel.scroll_end,
        }
        scroll[move](animate=False)
