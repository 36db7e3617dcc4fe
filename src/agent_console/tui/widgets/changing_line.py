"""Words that change while somebody looks, painted again only when they read differently."""

from textual.content import Content
from textual.widgets import Static

from agent_console.tui.agent_text import system_text

NOTHING = system_text("")


class ChangingLine(Static):
    def __init__(self, words: Content = NOTHING, *, classes: str | None = None, id: str | None = None) -> None:
        super().__init__(words, classes=classes, id=id)
        self._reads: Content = words

    def show(self, words: Content) -> None:
        if not words.is_same(self._reads):
            self._reads = words
            self.update(words)
