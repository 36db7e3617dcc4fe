"""The keys at the foot of a screen."""

from textual.screen import Screen
from textual.widgets import Footer

ShownKey = tuple[str, str, str, bool, str]


class KeyFooter(Footer):
    """Textual's footer, made anew only when it has other keys to show.

    Textual makes all its keys anew after every move of the focus, and lays the whole screen out again for it.
    """

    def __init__(self) -> None:
        super().__init__(show_command_palette=False, compact=True)
        self._shown_keys: tuple[ShownKey, ...] | None = None

    def bindings_changed(self, screen: Screen[object]) -> None:
        self._bindings_ready = True
        if screen.app.app_focus and self.is_attached and screen is self.screen:
            self.call_after_refresh(self._follow)

    async def _follow(self) -> None:
        if not self.is_attached:
            # The screen was closed meanwhile, perhaps by the very key that changed the focus.
            return
        keys = self._keys_to_show()
        if keys != self._shown_keys:
            self._shown_keys = keys
            await self.recompose()
            # Every key watches the footer, which would keep those that are gone until it is next asked to look.
            self.mutate_reactive(Footer.compact)

    def _keys_to_show(self) -> tuple[ShownKey, ...]:
        return tuple(
            (self.app.get_key_display(binding), binding.description, binding.action, enabled, tooltip)
            for _, binding, enabled, tooltip in self.screen.active_bindings.values()
            if binding.show
        )
