"""The line that says which panes there are, by their keys, and which one is shown."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from textual import events
from textual.binding import ActiveBinding, Binding
from textual.content import Content
from textual.message import Message
from textual.widget import Widget

from agent_console.tui.agent_text import system_text

LAYOUTS = ((2, None), (1, None), (1, 4), (1, 3))
"""Cells between two tabs, and how many letters of a title are left; the first that fits is taken."""
MORE = "more"
PANE_KEYS = (
    Binding("0", "pane('overview')", "Overview", show=False, id="pane.overview"),
    Binding("1", "pane('approvals')", "Approvals", show=False, id="pane.approvals"),
    Binding("2", "pane('agents')", "Agents", show=False, id="pane.agents"),
    Binding("3", "pane('jobs')", "Jobs", show=False, id="pane.jobs"),
    Binding("4", "pane('threads')", "Threads", show=False, id="pane.threads"),
    Binding("5", "pane('routes')", "Routes", show=False, id="pane.routes"),
    Binding("6", "pane('audit')", "Audit", show=False, id="pane.audit"),
)
MORE_KEY = Binding("7", "more", "More", show=False, id="pane.more")


@dataclass(frozen=True)
class PaneKey:
    """`action` is what its key does."""

    key: str
    title: str
    action: str
    name: str

    def text(self, *, shown: bool, letters: int | None) -> Content:
        title = self.title if shown else self.title[:letters]
        if shown:
            return system_text(f"{self.key} {title}", "bold reverse")
        return system_text(self.key, "$text-accent") + system_text(f" {title}", "$foreground-muted")


def tabs_of(bindings: Iterable[ActiveBinding]) -> tuple[PaneKey, ...]:
    """From the keys that lead to panes, as they are now: a key may have been given to something else. A pane whose
    key was changed keeps its place."""
    found: dict[str | None, Binding] = {}
    for active in bindings:
        found.setdefault(active.binding.id, active.binding)
    keys = (found[declared.id] for declared in (*PANE_KEYS, MORE_KEY) if declared.id in found)
    return tuple(
        PaneKey(key.key, key.description, key.action, (key.id or "").removeprefix("pane.")) for key in keys
    )


def tabs_line(tabs: Sequence[PaneKey], shown: str, width: int) -> tuple[Content, list[range]]:
    """The line, and the cells that each tab takes of it. Where there is little room titles are cut short."""
    for gap, letters in LAYOUTS:
        texts = [tab.text(shown=tab.name == shown, letters=letters) for tab in tabs]
        if sum(text.cell_length + gap for text in texts) - gap < width:
            break
    line, places = system_text("").pad_right(1), list[range]()
    for text in texts:
        places.append(range(line.cell_length, line.cell_length + text.cell_length))
        line = (line + text).pad_right(gap)
    return line.truncate(width, ellipsis=False, pad=True), places


class PaneTabs(Widget):
    DEFAULT_CSS = "PaneTabs { height: 1; }"

    class Chosen(Message):
        """Somebody clicked on a tab."""

        def __init__(self, action: str) -> None:
            super().__init__()
            self.action = action

    def __init__(self) -> None:
        super().__init__()
        self._tabs: tuple[PaneKey, ...] = ()
        self._shown = ""

    def show(self, tabs: Sequence[PaneKey], shown: str) -> None:
        """What has no key of its own is among the further ones."""
        shown = shown if any(tab.name == shown for tab in tabs) else MORE
        if (tuple(tabs), shown) != (self._tabs, self._shown):
            self._tabs, self._shown = tuple(tabs), shown
            self.refresh()

    def render(self) -> Content:
        return tabs_line(self._tabs, self._shown, self.size.width)[0]

    def on_click(self, event: events.Click) -> None:
        _, places = tabs_line(self._tabs, self._shown, self.size.width)
        for tab, place in zip(self._tabs, places, strict=True):
            if event.x in place:
                self.post_message(self.Chosen(tab.action))
