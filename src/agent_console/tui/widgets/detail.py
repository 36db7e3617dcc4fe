"""What is known of one thing, as much of it as one wants to scroll through."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from agent_console.tui.agent_text import system_text


class DetailPanel(VerticalScroll, can_focus=False):
    def __init__(self, *, classes: str | None = None) -> None:
        super().__init__(classes=classes)
        self._sheet = Static(system_text(""))
        self._shown = system_text("")

    def compose(self) -> ComposeResult:
        yield self._sheet

    def show(self, facts: Content) -> None:
        if not facts.is_same(self._shown):
            self._shown = facts
            self._sheet.update(facts)


class DetailScreen(ModalScreen[None]):
    """The whole screen for one thing, where there is no room beside the list."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter", "close", "Back", id="detail.close"),
        Binding("down,j", "scroll_down", "Down", show=False, id="detail.down"),
        Binding("up,k", "scroll_up", "Up", show=False, id="detail.up"),
        Binding("pagedown", "page_down", "Page down", show=False, id="detail.page_down"),
        Binding("pageup", "page_up", "Page up", show=False, id="detail.page_up"),
    ]

    def __init__(self, facts: Content) -> None:
        super().__init__()
        self._facts = facts

    def compose(self) -> ComposeResult:
        panel = DetailPanel(classes="whole")
        yield panel
        yield Static(system_text("Esc back   ↑ ↓ scroll", "$text-muted"), classes="hint")

    def on_mount(self) -> None:
        self.show(self._facts)

    def show(self, facts: Content) -> None:
        self.query_one(DetailPanel).show(facts)

    def action_close(self) -> None:
        self.dismiss(None)

    def action_scroll_down(self) -> None:
        self.query_one(DetailPanel).scroll_down(animate=False)

    def action_scroll_up(self) -> None:
        self.query_one(DetailPanel).scroll_up(animate=False)

    def action_page_down(self) -> None:
        self.query_one(DetailPanel).scroll_page_down(animate=False)

    def action_page_up(self) -> None:
        self.query_one(DetailPanel).scroll_page_up(animate=False)
