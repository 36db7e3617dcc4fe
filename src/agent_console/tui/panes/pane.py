"""What the console shows under its number keys, and what it expects of whatever it shows."""

from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from textual.containers import Vertical
from textual.dom import DOMNode
from textual.worker import Worker

from agent_console.repository.port import Change
from agent_console.tui.panes.surroundings import Surroundings


class View(Protocol):
    """A pane, or a screen that was opened from one. The topmost is stepped and ticked; all of them hear."""

    @property
    def crumb(self) -> str:
        """What it is called in the way back; it may be somebody's words and passes the gate before it is shown."""
        ...

    @property
    def has_answer(self) -> bool:
        """Whether everything it shows first has come, or has said why it has not."""
        ...

    def heard(self, change: Change) -> None:
        """Something may have changed; it is looked at with the next step, many notices at once."""
        ...

    def step(self) -> None:
        """Called a few times a second while this is shown and there is a connection."""
        ...

    def tick(self) -> None:
        """Another second: ages move, and only cells that read differently are painted."""
        ...

    def set_stale(self, stale: bool) -> None:
        """Without a connection the last data stays, dimmed; with it everything is asked for again."""
        ...


class Pane(Vertical):
    """What stands under a number key: shown and left as it is, never closed."""

    def __init__(self, name: str, around: Surroundings) -> None:
        super().__init__(id=f"pane-{name}", classes="pane")
        self.pane_name = name
        self.around = around

    @property
    def crumb(self) -> str:
        return self.pane_name.capitalize()

    @property
    def tab(self) -> str:
        """The pane with a key to which it belongs."""
        return self.pane_name

    @property
    def has_answer(self) -> bool:
        return True

    def heard(self, change: Change) -> None:
        """Nothing here changes with anything else."""

    def step(self) -> None:
        """Nothing here has to be asked for."""

    def tick(self) -> None:
        """Nothing here ages."""

    def set_stale(self, stale: bool) -> None:
        """Nothing here comes over the line."""

    def take_focus(self) -> None:
        self.focus()


def ask(node: DOMNode, question: str, asking: Callable[[], Coroutine[Any, Any, None]]) -> Worker[None]:
    """Asked in the node's name; a console that is left before the asking began leaves nothing begun."""
    return node.run_worker(asking, group=question)


def is_waiting(node: DOMNode, question: str) -> bool:
    """Whether this node has asked and still waits for the answer."""
    asked = (worker for worker in node.workers if worker.node is node and worker.group == question)
    return any(not worker.is_finished and not worker.is_cancelled for worker in asked)
