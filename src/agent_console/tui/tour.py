"""The tour: six short steps through the console, each beside what it talks about.

It only shows: while it is there no other key does anything. What lies below is made so much shorter that the box
never lies over it.
"""

from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.color import TRANSPARENT
from textual.content import Content
from textual.css.query import NoMatches
from textual.screen import ModalScreen, Screen
from textual.widgets import ContentSwitcher, Static

from agent_console.tui.agent_text import system_text
from agent_console.tui.closing import ClosesItself

BOX_LINES = 7
"""With its border; the last line of the screen, the keys of what lies below, is part of it."""
KEYS, LAST_KEYS = "Enter next   ← back   Esc leaves", "Enter ends   ← back   Esc leaves"


@dataclass(frozen=True)
class TourStep:
    pane: str
    title: str
    words: str


STEPS = (
    TourStep(
        "overview",
        "What needs you",
        "The list above begins with what waits for a person or went wrong. Enter opens it. "
        "An empty list is a quiet night.",
    ),
    TourStep(
        "approvals",
        "What only you decide",
        "Agents that ask each other for something risky wait here. Enter reads it whole; "
        "a approves, r rejects, and both ask again.",
    ),
    TourStep(
        "agents",
        "Who works",
        "Each agent with its jobs and its last sign of life. a drains, limits or revokes one; "
        "w shows its jobs, l what it did.",
    ),
    TourStep(
        "jobs",
        "What is worked on",
        "Enter follows a job live and says why it waits. f shows only one group, "
        "/ filters all of them: status:failed age:<1h",
    ),
    TourStep(
        "threads",
        "What is said",
        "People and agents talk here. Enter reads on live, c writes, t shows who asked whom. "
        "Their words are never taken for ours.",
    ),
    TourStep(
        "audit",
        "What was done, and by whom",
        "Every act is in this trail and sealed; V verifies it. "
        "When you are lost: ? lists the keys, : takes commands, 0 leads home.",
    ),
)


def step_lines(place: int) -> Content:
    step, is_last = STEPS[place], place == len(STEPS) - 1
    head = system_text(f"{place + 1} of {len(STEPS)}  {step.title}", "bold")
    keys = system_text(LAST_KEYS if is_last else KEYS, "$foreground-muted")
    return system_text("\n").join((head, system_text(step.words), keys))


@runtime_checkable
class ShowsPanes(Protocol):
    """The app, as far as the tour knows it."""

    @property
    def has_panes(self) -> bool: ...

    def action_pane(self, name: str) -> None: ...


class TourScreen(ClosesItself[None], ModalScreen[None]):
    """One step. The next one is a screen of its own: going to a pane closes whatever lies over it."""

    AUTO_FOCUS = ""
    DEFAULT_CSS = """
    TourScreen { align: center bottom; }
    TourScreen #tour {
        width: 100%;
        height: 7;
        border: round $primary;
        padding: 0 1;
        background: $surface;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,right,space,n", "go(1)", "Next", id="tour.next"),
        Binding("left,backspace,p", "go(-1)", "Back", id="tour.back"),
        Binding("escape,q,t", "leave", "Leave the tour", id="tour.close"),
    ]

    def __init__(self, place: int) -> None:
        super().__init__()
        self._place = place
        # Said here, because the console's own styles give every screen a background.
        self.styles.background = TRANSPARENT

    def compose(self) -> ComposeResult:
        yield Static(step_lines(self._place), id="tour")

    def on_mount(self) -> None:
        _make_room(self.app.screen_stack[0], BOX_LINES - 1)

    def on_unmount(self) -> None:
        if not any(isinstance(screen, TourScreen) for screen in self.app.screen_stack):
            _make_room(self.app.screen_stack[0], 0)

    def action_go(self, steps: int) -> None:
        if self.app.screen is not self:
            return
        place = self._place + steps
        if 0 <= place < len(STEPS):
            begin_tour(self, place)
        elif place == len(STEPS):
            self.action_leave()

    def action_leave(self) -> None:
        """Going to the pane once more closes the tour and lets the keys go to what is shown: the pane may not have
        been there yet when the tour came to it."""
        app = self.app
        if app.screen is self and isinstance(app, ShowsPanes):
            app.action_pane(STEPS[self._place].pane)


def begin_tour(screen: Screen[None], place: int = 0) -> None:
    """Go to the pane of a step, and tell about it; nothing before there are panes."""
    app = screen.app
    if isinstance(app, ShowsPanes) and app.has_panes:
        app.action_pane(STEPS[place].pane)
        app.push_screen(TourScreen(place))


def _make_room(screen: Screen[object], lines: int) -> None:
    """The screen itself may be going when the whole console ends in the middle of the tour."""
    try:
        below = screen.query_one(ContentSwitcher)
    except NoMatches:
        return
    below.styles.margin = (0, 0, lines, 0)
