"""The pane of a list that also has what is done to the queue as a whole."""

from typing import ClassVar

from textual.binding import Binding, BindingType

from agent_console.tui.actions import WITHOUT_A_LIST
from agent_console.tui.panes.list_kind import ListKind
from agent_console.tui.panes.list_pane import ListPane
from agent_console.tui.panes.surroundings import Surroundings


class QueuePane(ListPane):
    """Whoever looks for how to pause the queue finds it in the footer; on 80 columns other words make room."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "new", "Queue…", id="list.new"),
        Binding("u", "beside('upcoming')", "Due", id="list.upcoming"),
    ]


def pane_of(kind: ListKind, around: Surroundings) -> ListPane:
    has_a_queue = kind.list_operation.noun in WITHOUT_A_LIST.values()
    return (QueuePane if has_a_queue else ListPane)(kind, around)
