"""The whole screen for one thing of a list, where there is no room beside the list."""

from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen

from agent_console.domain.errors import ConsoleError, NotFound
from agent_console.domain.records import Record
from agent_console.repository.port import Change
from agent_console.tui.actions import row_actions
from agent_console.tui.agent_text import system_text
from agent_console.tui.facts import FactSheet, Heading
from agent_console.tui.link import GONE, LinkState, LinkStatus
from agent_console.tui.panes.detail_part import PartSoFar
from agent_console.tui.panes.list_pane import ListPane, is_waiting
from agent_console.tui.widgets.detail import DetailPanel
from agent_console.tui.widgets.header import HeaderBar, HeaderFacts
from agent_console.tui.widgets.key_footer import KeyFooter
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
        Binding("a", "act", "Actions", id="detail.act"),
        Binding("w", "below('jobs')", "Its jobs", id="detail.jobs"),
        Binding("s", "below('sessions')", "Its sessions", id="detail.sessions"),
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
        self._parts = {part.title: PartSoFar(part) for part in pane.kind.parts}
        self._dirty_parts = set(self._parts)
        # Held rather than looked up: an answer may come when the screen is already being taken down.
        self._notice = NoticeBar()
        self._panel = DetailPanel(classes="whole")

    def compose(self) -> ComposeResult:
        yield HeaderBar(self._header)
        yield self._notice
        yield self._panel
        yield KeyFooter()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        match action:
            case "below":
                return parameters[0] in self._pane.kind.below
            case "act":
                return not self._is_gone and self._pane.offers(row_actions)
        return True

    def on_mount(self) -> None:
        self.follow(self._pane.link_status)
        self.tick()
        if self._pane.link_status.state is LinkState.UP:
            self.step()

    @property
    def is_whole(self) -> bool:
        """Whether every part is there, or has said why it is not."""
        return all(so_far.known or so_far.problem for so_far in self._parts.values())

    def follow(self, status: LinkStatus) -> None:
        lost = status.state is not LinkState.UP
        self._notice.follow(status)
        self._panel.set_stale(lost or self._is_gone)
        self._dirty = True
        self._dirty_parts = set(self._parts)
        if lost:
            self.workers.cancel_node(self)

    def heard(self, change: Change) -> None:
        """Something may have changed; it is looked at with the next step."""
        self._dirty = True
        itself = str(getattr(self._record, self._pane.kind.key))
        parts = ((name, so_far.part) for name, so_far in self._parts.items())
        self._dirty_parts |= {name for name, part in parts if part.is_touched_by(change, itself)}

    def step(self) -> None:
        if self._is_gone:
            return
        if self._dirty and not is_waiting(self, ITSELF):
            self._dirty = False
            self._fetch()
        for name in [name for name in self._dirty_parts if not is_waiting(self, name)]:
            self._dirty_parts.remove(name)
            self.run_worker(self._fetch_part(name), group=name)

    def tick(self) -> None:
        sheet = self._pane.facts_of(self._record, self._parts.values())
        self._panel.show(FactSheet((GONE_FOR_GOOD, *sheet.parts)) if self._is_gone else sheet)

    @work(group=ITSELF)
    async def _fetch(self) -> None:
        try:
            self._take(await self._pane.fetch_one(self._record))
        except NotFound:
            self._is_gone = True
            self.refresh_bindings()
            self._panel.set_stale(True)
        except GONE:
            self._dirty = True
            return
        except ConsoleError as error:
            self._pane.post_message(ListPane.Refused(error))
            return
        self.tick()

    def _take(self, record: Record) -> None:
        """What a part asks may depend on how the thing stands: then it has to be asked anew."""
        parts = ((name, so_far.part) for name, so_far in self._parts.items())
        self._dirty_parts |= {name for name, part in parts if part.asked(record) != part.asked(self._record)}
        self._record = record

    async def _fetch_part(self, name: str) -> None:
        so_far = self._parts[name]
        try:
            answer = await self._pane.fetch_part(so_far.part, self._record, so_far.answer)
            self._parts[name] = so_far.answered(answer)
        except ConsoleError as error:
            self._parts[name] = so_far.failed(str(error))
            if isinstance(error, GONE):
                self._dirty_parts.add(name)
        self.tick()

    def action_act(self) -> None:
        self.post_message(ListPane.ActionWanted(self._pane, self._pane.subject(self._record)))

    def action_below(self, name: str) -> None:
        self.post_message(ListPane.ListWanted(self._pane.kind.below[name](self._record)))

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
