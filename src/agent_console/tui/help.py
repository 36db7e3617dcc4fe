"""Help: the keys that work where it was asked for, made from the keys themselves."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Input, Static

from agent_console.tui.agent_text import agent_text, system_text
from agent_console.tui.closing import ClosesItself
from agent_console.tui.key_words import words_of
from agent_console.tui.widgets.still_input import StillInput

SHOWN = {
    "question_mark": "?",
    "asterisk": "*",
    "slash": "/",
    "colon": ":",
    "number_sign": "#",
    "less_than_sign": "<",
    "greater_than_sign": ">",
    "pageup": "PgUp",
    "pagedown": "PgDn",
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
    "enter": "Enter",
    "escape": "Esc",
    "space": "Space",
    "home": "Home",
    "end": "End",
    "tab": "Tab",
}
KEY_CELLS = 13
WORD_CELLS = 24


@dataclass(frozen=True)
class KeyHelp:
    """What one action is called, on which keys, and whether it works everywhere or only here."""

    keys: tuple[str, ...]
    words: str
    id: str
    everywhere: bool

    def has(self, words: Iterable[str]) -> bool:
        text = f"{' '.join(self.keys)} {self.words} {self.id}".lower()
        return all(word in text for word in words)


def shown_key(key: str) -> str:
    return SHOWN.get(key, key)


def live_keys(screen: Screen[object]) -> tuple[KeyHelp, ...]:
    """One for each action, made from the bindings that are live right now."""
    found: dict[str, KeyHelp] = {}
    for active in screen.active_bindings.values():
        binding = active.binding
        # What Textual binds by itself has no id; every key of ours has one, so that it can be remapped.
        if binding.id and binding.description:
            known = found.get(binding.id)
            keys = (*(known.keys if known else ()), shown_key(binding.key))
            found[binding.id] = KeyHelp(keys, words_of(active), binding.id, active.node is screen.app)
    return tuple(sorted(found.values(), key=lambda one: one.words.lower()))


def key_lines(keys: Iterable[KeyHelp], typed: str) -> Content:
    """Those with everything that was typed in them, first what works here, then what works everywhere."""
    fitting = [one for one in keys if one.has(typed.lower().split())]
    if not fitting:
        return system_text("No key has that in its words.", "$foreground-muted")
    groups = {"Here": [one for one in fitting if not one.everywhere]}
    groups["Everywhere"] = [one for one in fitting if one.everywhere]
    parts = [_group(title, members) for title, members in groups.items() if members]
    return system_text("\n\n").join(parts)


def _group(title: str, members: list[KeyHelp]) -> Content:
    lines = [system_text(title, "bold")]
    for one in members:
        keys = agent_text(" ".join(one.keys).ljust(KEY_CELLS), "$text-accent")
        words = agent_text(f" {one.words.ljust(WORD_CELLS)} ")
        lines.append(keys + words + agent_text(one.id, "$foreground-muted"))
    return system_text("\n").join(lines)


@runtime_checkable
class KnowsKeyProblems(Protocol):
    """The app, as far as the help knows it."""

    @property
    def key_problems(self) -> tuple[str, ...]: ...


class HelpScreen(ClosesItself[None]):
    """It is no modal screen: the keys that work everywhere work here too, until somebody searches."""

    AUTO_FOCUS = "VerticalScroll"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,q,enter", "close", "Back", id="help.close"),
        Binding("slash", "search", "Search", id="help.search"),
        Binding("t", "tour", "Tour", id="help.tour"),
    ]

    def __init__(self, keys: tuple[KeyHelp, ...], problems: tuple[str, ...] = ()) -> None:
        super().__init__()
        self._keys = keys
        self._problems = problems
        self._lines = Static(key_lines(keys, ""))
        self._input = StillInput(compact=True, max_length=60)
        self._input.display = False

    @classmethod
    def of(cls, screen: Screen[object]) -> "HelpScreen":
        app = screen.app
        return cls(live_keys(screen), app.key_problems if isinstance(app, KnowsKeyProblems) else ())

    def compose(self) -> ComposeResult:
        title = system_text("Keys", "bold") + system_text(
            "   / searches   t begins the tour   Esc closes", "$foreground-muted"
        )
        with Vertical(classes="help"):
            yield Static(title)
            for problem in self._problems:
                yield Static(agent_text(f"✗ {problem}", "$text-warning", limit=200))
            yield self._input
            with VerticalScroll():
                yield self._lines

    def action_tour(self) -> None:
        from agent_console.tui.tour import begin_tour

        begin_tour(self)

    def action_search(self) -> None:
        self._input.display = True
        # At once: the next key may be waiting already, and it is text.
        self.set_focus(self._input)

    @on(Input.Changed)
    def _typed(self, message: Input.Changed) -> None:
        self._lines.update(key_lines(self._keys, message.value))

    @on(Input.Submitted)
    def _submitted(self) -> None:
        self.query_one(VerticalScroll).focus()

    def action_close(self) -> None:
        self.dismiss(None)
