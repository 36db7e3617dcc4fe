"""Help: the keys that work where it was asked for."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Static

from agent_console.tui.agent_text import system_text

SHOWN = {
    "question_mark": "?",
    "asterisk": "*",
    "pageup": "PgUp",
    "pagedown": "PgDn",
    "up": "↑",
    "down": "↓",
    "enter": "Enter",
    "escape": "Esc",
    "space": "Space",
    "home": "Home",
    "end": "End",
}


def key_lines(screen: Screen[object]) -> Content:
    """One line per action, made from the bindings that are live right now."""
    keys: dict[str, list[str]] = {}
    for active in screen.active_bindings.values():
        binding = active.binding
        # What Textual binds by itself has no id; every key of ours has one, so that it can be remapped.
        if binding.id and binding.description:
            keys.setdefault(binding.description, []).append(SHOWN.get(binding.key, binding.key))
    lines = system_text("Keys that work here", "bold") + system_text("   (Esc closes)\n", "$foreground-muted")
    for description in sorted(keys):
        shown = " ".join(dict.fromkeys(keys[description]))
        lines += system_text(f"\n{shown:<16}", "$text-accent") + system_text(description)
    return lines


class HelpScreen(Screen[None]):
    """It is no modal screen: the keys that work everywhere work here too."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,q,enter", "close", "Back", id="help.close"),
    ]

    def __init__(self, lines: Content) -> None:
        super().__init__()
        self._lines: Content = lines

    @classmethod
    def of(cls, screen: Screen[object]) -> "HelpScreen":
        return cls(key_lines(screen))

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="help"):
            yield Static(self._lines)

    def action_close(self) -> None:
        self.dismiss(None)
