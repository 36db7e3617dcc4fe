"""The keys at the foot of a screen."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.screen import Screen
from textual.widgets import Footer
from textual.widgets._footer import FooterKey

from agent_console.tui.key_words import words_of

GAP = 1


@dataclass(frozen=True)
class ShownKey:
    """One that `stays` is shown before any other: how to get out, and how to get help."""

    display: str
    words: str
    action: str
    enabled: bool
    tooltip: str
    stays: bool = False

    @property
    def cells(self) -> int:
        return cell_len(f"{self.display} {self.words}")


def fitting(keys: Sequence[ShownKey], width: int) -> tuple[ShownKey, ...]:
    """Those that are shown whole in so many cells; the last ones give way first."""
    kept = list(keys)
    for key in reversed([key for key in keys if not key.stays]):
        if sum(one.cells + GAP for one in kept) - GAP <= width:
            break
        kept.remove(key)
    return tuple(kept)


class KeyFooter(Footer):
    """Textual's footer, made anew only when it has other keys to show, and without half a word at its end.

    Textual makes all its keys anew after every move of the focus, and lays the whole screen out again for it.
    """

    def __init__(self) -> None:
        super().__init__(show_command_palette=False, compact=True)
        self._shown_keys: tuple[ShownKey, ...] | None = None

    def compose(self) -> ComposeResult:
        every = self._keys()
        shown = fitting(every, self.app.size.width)
        for made, key in zip(super().compose(), every, strict=False):
            if key in shown:
                if isinstance(made, FooterKey):
                    made.description = key.words
                yield made
        self.styles.grid_size_columns = max(1, len(shown))

    def bindings_changed(self, screen: Screen[object]) -> None:
        self._bindings_ready = True
        if screen.app.app_focus and self.is_attached and screen is self.screen:
            self.call_after_refresh(self._follow)

    def on_resize(self) -> None:
        self.call_after_refresh(self._follow)

    async def _follow(self) -> None:
        if not self.is_attached or not self._bindings_ready:
            # The screen was closed meanwhile, perhaps by the very key that changed the focus.
            return
        keys = fitting(self._keys(), self.app.size.width)
        if keys != self._shown_keys:
            self._shown_keys = keys
            await self.recompose()
            # Every key watches the footer, which would keep those that are gone until it is next asked to look.
            self.mutate_reactive(Footer.compact)

    def _keys(self) -> tuple[ShownKey, ...]:
        """One for each action, in the order in which Textual makes them."""
        found: dict[str, ShownKey] = {}
        for active in self.screen.active_bindings.values():
            node, binding, enabled, tooltip = active
            if binding.show:
                stays = node is self.app or binding.key == "escape"
                display = self.app.get_key_display(binding)
                key = ShownKey(display, words_of(active), binding.action, enabled, tooltip, stays)
                found.setdefault(binding.action, key)
        return tuple(found.values())
