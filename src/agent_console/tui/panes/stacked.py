"""A screen that was opened from a pane or from another such screen: Esc leads back to that."""

from typing import ClassVar, Protocol, runtime_checkable

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from agent_console.repository.port import REFETCH, Change
from agent_console.tui.closing import ClosesItself
from agent_console.tui.link import LinkStatus
from agent_console.tui.panes.surroundings import Surroundings
from agent_console.tui.widgets.header import HeaderBar, HeaderFacts
from agent_console.tui.widgets.key_footer import KeyFooter
from agent_console.tui.widgets.notice_bar import NoticeBar
from agent_console.tui.widgets.way_line import WayLine


@runtime_checkable
class KnowsTheWay(Protocol):
    """The app, as far as such a screen knows it."""

    @property
    def crumbs(self) -> tuple[str, ...]: ...

    @property
    def header_facts(self) -> HeaderFacts: ...


class StackedScreen(ClosesItself[None]):
    """Yields its content from `body`. It is no modal screen: the keys that work everywhere work here too.

    The way back stands below the header as soon as it is longer than one step.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "close", "Back", id="screen.close")]

    def __init__(self, around: Surroundings) -> None:
        super().__init__()
        self.around = around
        # Held rather than looked up: an answer may come when the screen is already being taken down.
        self.notice = NoticeBar()
        self._way = WayLine()

    def compose(self) -> ComposeResult:
        app = self.app
        if isinstance(app, KnowsTheWay):
            yield HeaderBar(app.header_facts)
        yield self.notice
        yield self._way
        yield from self.body()
        yield KeyFooter()

    def body(self) -> ComposeResult:
        raise NotImplementedError

    def on_mount(self) -> None:
        self.follow(self.around.link.status)
        self.tick()
        if self.around.up:
            self.step()

    def on_screen_resume(self) -> None:
        self.show_way()
        self.tick()

    def show_way(self) -> None:
        """Also when a screen that was opened by an id has learned a name."""
        app = self.app
        self._way.show(app.crumbs if isinstance(app, KnowsTheWay) else ())

    def come_back(self) -> None:
        """Shown again as it was left; what changed meanwhile it has not heard."""
        self.follow(self.around.link.status)
        self.heard(REFETCH)

    def follow(self, status: LinkStatus) -> None:
        self.notice.follow(status)
        self.set_stale(not self.around.up)

    @property
    def crumb(self) -> str:
        raise NotImplementedError

    @property
    def about(self) -> str:
        """What it shows: nobody opens the same from itself."""
        return f"{type(self).__name__} {self.crumb}"

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

    def may_leave(self) -> bool:
        """Whether somebody may be led elsewhere; a screen that says no tells why."""
        return True

    def action_close(self) -> None:
        self.dismiss(None)
