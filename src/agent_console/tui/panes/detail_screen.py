"""The whole screen for one thing of a list, where there is no room beside the list."""

from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Footer

from agent_console.domain.errors import ConsoleError, NotFound
from agent_console.domain.records import Record
from agent_console.repository.port import Change
from agent_console.tui.agent_text import system_text
from agent_console.tui.facts import FactSheet, Heading
from agent_console.tui.link import GONE, LinkState, LinkStatus
from agent_console.tui.panes.list_pane import ListPane, is_waiting
from agent_console.tui.widgets.detail import DetailPanel
from agent_console.tui.widgets.header import HeaderBar, HeaderFacts
from agent_console.tui.widgets.notice_bar import NoticeBar

ITSELF = "itself"
GONE_FOR_GOOD = Heading(
    system_text("It no longer exists. This is the last that was known of it.", "$text-warning")
)


class DetailScreen(Screen[None]):
    """Fetches its own thing, because the list behind it may have none of it any more.

    It is no modal screen: the keys that work everywhere work here too.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter", "close", "Back", id="detail.close"),
        Binding("down,j", "scroll_down", "Down", show=False, id="detail.down"),
        Binding("up,k", "scroll_up", "Up", show=False, id="detail.up"),
        Binding("pagedown,space", "page_down", "Page down", show=False, id="detail.page_down"),
        Binding("pageup", "page_up", "Page up", show=False, id="detail.page_up"),
        Binding("home,g", "scroll_home", "First", show=False, id="detail.first"),
        Binding("end,G", "scroll_end", "Last", show=False, id="detail.last"),
    ]

    def __init__(self, pane: ListPane, record: Record, header: HeaderFacts) -> None:
        super().__init__()
        self._pane = pane
        self._record = record
        self._header = header
        self._is_gone = False
        self._dirty = True
        # Held rather than looked up: an answer may come when the screen is already being taken down.
        self._notice = NoticeBar()
        self._panel = DetailPanel(classes="whole")

    def compose(self) -> ComposeResult:
        yield HeaderBar(self._header)
        yield self._notice
        yield self._panel
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        self.follow(self._pane.link_status)
        self.tick()

    def follow(self, status: LinkStatus) -> None:
        lost = status.state is not LinkState.UP
        self._notice.follow(status)
        self._panel.set_stale(lost or self._is_gone)
        self._dirty = True
        if lost:
            self.workers.cancel_node(self)

    def heard(self, change: Change) -> None:
        """Something may have changed; it is looked at with the next step."""
        self._dirty = True

    def step(self) -> None:
        if self._dirty and not self._is_gone and not is_waiting(self, ITSELF):
            self._dirty = False
            self._fetch()

    def tick(self) -> None:
        sheet = self._pane.facts_of(self._record)
        self._panel.show(FactSheet((GONE_FOR_GOOD, *sheet.parts)) if self._is_gone else sheet)

    @work(group=ITSELF)
    async def _fetch(self) -> None:
        try:
            self._record = await self._pane.fetch_one(self._record)
        except NotFound:
            self._is_gone = True
            self._panel.set_stale(True)
        except GONE:
            self._dirty = True
            return
        except ConsoleError as error:
            self._pane.post_message(ListPane.Refused(error))
            return
        self.tick()

    def action_close(self) -> None:
        self.dismiss(None)

    def action_scroll_down(self) -> None:
        self._panel.scroll_down(animate=False)

    def action_scroll_up(self) -> None:
        self._panel.scroll_up(animate=False)

    def action_page_down(self) -> None:
        self._panel.scroll_page_down(animate=False)

    def action_page_up(self) -> None:
        self._panel.scroll_page_up(animate=False)

    def action_scroll_home(self) -> None:
        self._panel.scroll_home(animate=False)

    def action_scroll_end(self) -> None:
        self._panel.scroll_end(animate=False)
