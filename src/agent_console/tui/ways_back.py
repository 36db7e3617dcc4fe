"""The way back from a list that belongs to a thing: to where it was opened, with the screens that lay there."""

from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

from textual.app import App

if TYPE_CHECKING:
    from agent_console.tui.panes.stacked import StackedScreen

LONGEST = 8
"""So many lists may be opened one from another; then how one came to the first of them is forgotten."""


@dataclass(frozen=True)
class Way:
    """`to` is the list that was opened, from this pane and the screens over it; `crumbs` name all of them."""

    to: str
    pane: str
    screens: "tuple[StackedScreen, ...]"
    crumbs: tuple[str, ...]


class WaysBack:
    """The newest last. The screens stay as they were left, a cursor and a place in a text with them."""

    def __init__(self, app: App[None]) -> None:
        self._app = app
        self._ways: list[Way] = []
        self._numbers = count(1)

    @property
    def crumbs(self) -> tuple[str, ...]:
        return tuple(crumb for way in self._ways for crumb in way.crumbs)

    @property
    def panes(self) -> frozenset[str]:
        """Those that a way leads back to, or from."""
        return frozenset(name for way in self._ways for name in (way.to, way.pane))

    def keep(self, way: Way) -> None:
        """To be called while the screens still lie there: what is installed outlives that."""
        for screen in way.screens:
            self._app.install_screen(screen, f"way back {next(self._numbers)}")
        self._ways.append(way)
        if len(self._ways) > LONGEST:
            self._let_go(self._ways.pop(0))

    def back_from(self, to: str) -> Way | None:
        """The way back from this list, which is forgotten by it; its screens are shown or lost."""
        if not self._ways or self._ways[-1].to != to:
            return None
        way = self._ways.pop()
        for screen in way.screens:
            self._app.uninstall_screen(screen)
        return way

    def forget(self) -> None:
        while self._ways:
            self._let_go(self._ways.pop())

    def _let_go(self, way: Way) -> None:
        for screen in way.screens:
            self._app.uninstall_screen(screen)
            screen.remove()
