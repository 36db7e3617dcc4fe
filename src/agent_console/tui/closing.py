"""Screens that close themselves and nothing else."""

from typing import TypeVar

from textual.await_complete import AwaitComplete
from textual.screen import Screen

Result = TypeVar("Result")


class ClosesItself(Screen[Result]):
    """A key that comes twice closes one screen: Textual would take away whatever lies on top by then."""

    def dismiss(self, result: Result | None = None) -> AwaitComplete:
        if self.app.screen is not self:
            return AwaitComplete()
        return super().dismiss(result)
