"""The console: wires header, panes and the link together, and does nothing else."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import ContentSwitcher, Static

from agent_console.domain.errors import ConsoleError
from agent_console.tui.agent_text import agent_text, system_text
from agent_console.tui.link import GONE, Clock, Link, LinkState, LinkStatus, Opening
from agent_console.tui.terminal.terminal_app import TerminalApp
from agent_console.tui.themes import THEMES, theme_for
from agent_console.tui.widgets.header import HeaderBar, HeaderFacts
from agent_console.tui.widgets.help import HelpScreen
from agent_console.tui.widgets.key_footer import KeyFooter
from agent_console.tui.widgets.notice_bar import NoticeBar

if TYPE_CHECKING:
    # What is needed only once there is something to show waits until the first frame is on the screen.
    from agent_console.domain.agents import PoolStatus
    from agent_console.repository.port import Change
    from agent_console.tui.panes.detail_screen import DetailScreen
    from agent_console.tui.panes.list_kind import ListKind
    from agent_console.tui.panes.list_pane import ListPane
    from agent_console.tui.subject import Subject

STEP_SECONDS = 0.25
POLL_SECONDS = 5.0
POOL = "pool"
DOING = "doing"


def system_clock() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True)
class Setup:
    """Where to go, as what it is shown, and how the console looks and listens to keys."""

    opening: Opening
    profile: str
    production: bool = False
    colour: str | None = None
    read_only: bool = False
    theme: str = "dark"
    keymap: Mapping[str, str] = field(default_factory=dict)


class LinkChanged(Message):
    def __init__(self, status: LinkStatus) -> None:
        super().__init__()
        self.status = status


class Heard(Message):
    def __init__(self, change: "Change") -> None:
        super().__init__()
        self.change = change


class ConsoleApp(TerminalApp[None]):
    TITLE = "agent-console"
    CSS_PATH = "styles.tcss"
    ENABLE_COMMAND_PALETTE = False

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark", "help", "Help", id="app.help"),
        Binding("2", "pane('agents')", "Agents", id="pane.agents"),
        Binding("3", "pane('jobs')", "Jobs", id="pane.jobs"),
        Binding("7", "more", "More", id="pane.more"),
        Binding("ctrl+l", "redraw", "Redraw", show=False, id="app.redraw"),
        Binding("q", "leave", "Quit", id="app.quit"),
        Binding("ctrl+c,ctrl+q", "leave", "Quit", show=False, priority=True, id="app.quit_now"),
    ]

    def __init__(
        self, prepare: Callable[[], Setup], *, theme_name: str = "dark", clock: Clock = system_clock
    ) -> None:
        """`prepare` may be slow: it is called off the event loop, behind the first frame."""
        super().__init__()
        self._prepare = prepare
        self._clock = clock
        self._pool_is_dirty = True
        self._leaving = False
        self._panes: tuple[ListPane, ...] = ()
        self._adding = asyncio.Lock()
        # Held rather than looked up: news may come when the screen is already being taken down.
        self._notice = NoticeBar()
        self._switcher = ContentSwitcher(initial="loading", id="panes")
        self.refusal: ConsoleError | None = None
        self.link = Link(
            on_status=self._tell_status, on_change=self._tell_change, clock=clock, on_refusal=self._refuse
        )
        self._facts = HeaderFacts("agent-console", production=False, read_only=False)
        for theme in THEMES.values():
            self.register_theme(theme)
        self.theme = theme_for(theme_name)

    def compose(self) -> ComposeResult:
        yield HeaderBar(self._facts)
        yield self._notice
        with self._switcher:
            yield Static(system_text("Loading …", "$foreground-muted"), id="loading")
        yield KeyFooter()

    def on_mount(self) -> None:
        super().on_mount()
        self._notice.follow(self.link.status)
        self.call_after_refresh(self._bring_panes)

    @work
    async def _bring_panes(self) -> None:
        """Paint first: settings, models, operations and panes come behind the first frame, off the event loop."""
        try:
            setup = await asyncio.to_thread(self._prepare)
        except ConsoleError as error:
            self._refuse(error)
            return
        await asyncio.to_thread(import_module, "agent_console.tui.panes.every")
        from agent_console.tui.panes.every import every_pane

        self._facts = HeaderFacts(setup.profile, setup.production, setup.read_only, setup.colour)
        self.theme = theme_for(setup.theme)
        if setup.keymap:
            self.set_keymap(dict(setup.keymap))
        panes = every_pane(self.link, self._clock, read_only=setup.read_only)
        for pane in panes:
            await self._switcher.add_content(pane)
        if not all(pane.is_attached for pane in panes):
            # Somebody left meanwhile, and the screen is being taken down.
            return
        self._panes = panes
        self.action_pane("agents")
        self.link.start(setup.opening)
        self.set_interval(STEP_SECONDS, self._step)
        self.set_interval(1.0, self._tick)
        self.set_interval(POLL_SECONDS, self._poll)

    def _refuse(self, error: ConsoleError) -> None:
        """End with a sentence: there is nothing here to show or to wait for."""
        self.refusal = error
        self.exit(return_code=error.exit_code)

    async def on_unmount(self) -> None:
        """Whichever way the app ends, what was started for it ends too."""
        await self.link.close()

    @property
    def has_panes(self) -> bool:
        """False while the first frame is all there is."""
        return bool(self._panes) and self.link.is_started

    @property
    def pane(self) -> "ListPane":
        return next(pane for pane in self._panes if pane.id == self._switcher.current)

    @property
    def detail(self) -> "DetailScreen | None":
        """The screen that shows one thing whole; help may lie over it."""
        from agent_console.tui.panes.detail_screen import DetailScreen

        details = (screen for screen in self.screen_stack if isinstance(screen, DetailScreen))
        return next((screen for screen in details if screen.is_mounted), None)

    # What time brings

    def _step(self) -> None:
        if self.link.status.state is not LinkState.UP:
            return
        self.pane.step()
        if self.detail is not None:
            self.detail.step()
        from agent_console.tui.panes.list_pane import is_waiting

        if self._pool_is_dirty and not is_waiting(self, POOL):
            self._pool_is_dirty = False
            self._fetch_pool()

    def _tick(self) -> None:
        self._show_header()
        self.pane.tick()
        if self.detail is not None:
            self.detail.tick()

    def _poll(self) -> None:
        """Notices can get lost; looking again cannot."""
        from agent_console.repository.port import REFETCH

        self._pool_is_dirty = True
        for listener in self._listeners():
            listener.heard(REFETCH)

    @work(group=POOL)
    async def _fetch_pool(self) -> None:
        from agent_console.domain.records import Nothing
        from agent_console.repository.operations import POOL_STATUS

        try:
            pool = await self.link.call(POOL_STATUS, Nothing())
        except ConsoleError:
            self._pool_is_dirty = True
            return
        self._show_header(pool)

    # What the link tells

    def _tell_status(self, status: LinkStatus) -> None:
        self.post_message(LinkChanged(status))

    def _tell_change(self, change: "Change") -> None:
        self.post_message(Heard(change))

    @on(LinkChanged)
    def _link_changed(self, message: LinkChanged) -> None:
        up = message.status.state is LinkState.UP
        self._notice.follow(message.status)
        for pane in self._panes:
            pane.set_stale(not up)
        if self.detail is not None:
            self.detail.follow(message.status)
        if up:
            self._pool_is_dirty = True
            self._step()
        # Which keys there are depends on who we are, and on whether anything can be done at all.
        self.refresh_bindings()
        self._show_header()

    @on(Heard)
    def _heard(self, message: Heard) -> None:
        self._pool_is_dirty = True
        for listener in self._listeners():
            listener.heard(message.change)

    def _listeners(self) -> "tuple[ListPane | DetailScreen, ...]":
        return (*self._panes, *([self.detail] if self.detail else []))

    def on_list_pane_refused(self, message: "ListPane.Refused") -> None:
        if not isinstance(message.error, GONE):
            self.notify(agent_text(str(message.error), limit=500).plain, severity="warning", markup=False)

    def _show_header(self, pool: "PoolStatus | None" = None) -> None:
        self._facts = HeaderFacts(
            self._facts.profile,
            self._facts.production,
            self._facts.read_only,
            self._facts.colour,
            self.link.me,
            pool or self._facts.pool,
            self.link.status,
            self.link.answered_at,
            self._clock(),
        )
        for screen in self.screen_stack:
            for bar in screen.query(HeaderBar):
                bar.facts = self._facts

    # What the operator does

    def action_pane(self, name: str) -> None:
        if not self._panes:
            return
        while len(self.screen_stack) > 1:
            self.pop_screen()
        self._switcher.current = f"pane-{name}"
        self.pane.table.focus()
        self.pane.tick()
        self._step()

    def action_more(self) -> None:
        if self._panes and len(self.screen_stack) == 1:
            self._choose_list()

    @work(group=DOING)
    async def _choose_list(self) -> None:
        from agent_console.tui.dialogs.list_menu import ListMenu
        from agent_console.tui.panes.every import MORE

        noun = await self.push_screen_wait(ListMenu(tuple(MORE)))
        if noun is not None:
            await self._show_list(MORE[noun])

    def on_list_pane_list_wanted(self, message: "ListPane.ListWanted") -> None:
        self._go_to_list(message.kind)

    def on_list_pane_left(self, message: "ListPane.Left") -> None:
        self.action_pane(message.above)

    @work(group=DOING)
    async def _go_to_list(self, kind: "ListKind") -> None:
        await self._show_list(kind)

    async def _show_list(self, kind: "ListKind") -> None:
        """A pane that is there already is shown as it was left."""
        from agent_console.tui.panes.queue_pane import pane_of

        # One after the other: a key pressed twice must not make the same pane twice.
        async with self._adding:
            if not any(pane.kind.name == kind.name for pane in self._panes):
                pane = pane_of(kind, self.link, self._clock, read_only=self._facts.read_only)
                await self._switcher.add_content(pane)
                pane.set_stale(self.link.status.state is not LinkState.UP)
                self._panes += (pane,)
        self.action_pane(kind.name)

    def on_list_pane_opened(self, message: "ListPane.Opened") -> None:
        from agent_console.tui.panes.detail_screen import DetailScreen

        if len(self.screen_stack) == 1:
            self.push_screen(DetailScreen(message.pane, message.record, self._facts))

    def on_list_pane_action_wanted(self, message: "ListPane.ActionWanted") -> None:
        from agent_console.tui.panes.list_pane import is_waiting

        # A key pressed twice must not ask twice.
        if not self.screen.is_modal and not is_waiting(self, DOING):
            self._do_something(message.pane, message.subject)

    @work(group=DOING)
    async def _do_something(self, pane: "ListPane", subject: "Subject") -> None:
        from agent_console.tui.doing import do_something

        if await do_something(self, self.link, subject) and subject.marked:
            pane.table.unmark_all()
        pane.refetch()

    def action_help(self) -> None:
        if not isinstance(self.screen, HelpScreen):
            self.push_screen(HelpScreen.of(self.screen))

    def action_leave(self) -> None:
        """Whatever was started for us is stopped before the screen goes."""
        if not self._leaving:
            self._leaving = True
            self._notice.follow(LinkStatus(LinkState.STARTING, "Leaving …"))
            self._leave()

    @work
    async def _leave(self) -> None:
        await self.link.close()
        self.exit()
