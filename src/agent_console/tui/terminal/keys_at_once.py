"""Keys that a list does by itself, without the way up through everything that is around it.

Textual hands a key to the widget with the focus, from there to its parent and on, one after the other, and only
when it has come up to the app does the app look for whoever has bound it. From a list deep in a screen that takes
as long as painting the cursor does.
"""

from collections.abc import Mapping
from weakref import WeakSet

from textual import events
from textual.app import App, ReturnType
from textual.binding import BindingsMap
from textual.dom import DOMNode


class DoesKeysAtOnce:
    """What a widget inherits whose own keys mean the same whatever is around it.

    Only keys that can't be printed: what can may be meant for a line to type into that is just being opened.
    """


class KeysOnTheirWay:
    """Keys that were handed on and are not done. No other overtakes them: what it does may depend on them."""

    def __init__(self) -> None:
        # Who keeps a key to itself does not tell; such a key is gone with the last that held it.
        self._keys: WeakSet[events.Key] = WeakSet()

    def __bool__(self) -> bool:
        return bool(self._keys)

    def handed_on(self, key: events.Key) -> None:
        self._keys.add(key)

    def done(self, key: events.Key) -> None:
        self._keys.discard(key)


async def done_at_once(app: App[ReturnType], key: events.Key) -> bool:
    """Whether the list with the focus has done the key; if not, nothing has happened."""
    focused = app.focused
    if not isinstance(focused, DoesKeysAtOnce) or key.is_printable or not app.app_focus:
        return False
    if focused.loading or app.screen.maximized is not None:
        return False
    keymap, around = app._keymap, focused.ancestors_with_self
    if any(_wants_it_first(node, key.key, keymap) for node in around):
        return False
    app.screen._clear_tooltip()
    for binding in _bindings_of(focused, keymap).key_to_bindings.get(key.key, ()):
        if await app.run_action(binding.action, focused):
            return True
    return False


def _wants_it_first(node: DOMNode, key: str, keymap: Mapping[str, str]) -> bool:
    """The app looks at a key that has come up to it, for lines to type into; those don't do theirs at once."""
    if hasattr(node, "on_key") and not isinstance(node, App):
        return True
    return any(binding.priority for binding in _bindings_of(node, keymap).key_to_bindings.get(key, ()))


def _bindings_of(node: DOMNode, keymap: Mapping[str, str]) -> BindingsMap:
    if not keymap:
        return node._bindings
    remapped = node._bindings.copy()
    remapped.apply_keymap(dict(keymap))
    return remapped
