"""What panes and screens ask the console for: they know what they want, it knows where that is.

Light on purpose: the console imports it before its first frame.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.message import Message

from agent_console.domain.errors import ConsoleError

if TYPE_CHECKING:
    from agent_console.domain.records import Record
    from agent_console.tui.panes.list_kind import ListKind
    from agent_console.tui.panes.stacked import StackedScreen
    from agent_console.tui.subject import Subject


class Wanted(Message):
    """Reaches the console from any pane or screen."""

    bubble = True


class RecordWanted(Wanted):
    """Somebody wants to read one thing whole."""

    def __init__(self, kind: "ListKind", record: "Record") -> None:
        super().__init__()
        self.kind = kind
        self.record = record


class ThingWanted(Wanted):
    """Somebody wants to see a thing that is only known by its noun and id."""

    def __init__(self, noun: str, thing_id: str) -> None:
        super().__init__()
        self.noun = noun
        self.thing_id = thing_id


class ScreenWanted(Wanted):
    """Somebody wants this very screen, on top of what is shown."""

    def __init__(self, screen: "StackedScreen") -> None:
        super().__init__()
        self.screen = screen


class ListWanted(Wanted):
    """Somebody wants to see another list."""

    def __init__(self, kind: "ListKind") -> None:
        super().__init__()
        self.kind = kind


class PaneWanted(Wanted):
    """Somebody wants to go to a pane that has a key."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name


class BackWanted(Wanted):
    """Somebody wants to go back from a list to where it was opened, or to the pane where it belongs."""

    def __init__(self, belongs_to: str) -> None:
        super().__init__()
        self.belongs_to = belongs_to


class ActionWanted(Wanted):
    """Somebody wants to do something to what the key was pressed on; `after` is told whether it was done."""

    def __init__(self, subject: "Subject", after: Callable[[bool], None]) -> None:
        super().__init__()
        self.subject = subject
        self.after = after


class Refused(Wanted):
    """Fetching was refused for a reason of its own, not because the connection is gone."""

    def __init__(self, error: ConsoleError) -> None:
        super().__init__()
        self.error = error
