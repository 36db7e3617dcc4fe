"""The console: wires header, panes and the link together, and does nothing else."""

import asyncio
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import ContentSwitcher, Static

from agent_console.domain.errors import ConsoleError
from agent_console.tui.agent_text import agent_text, system_text
from agent_console.tui.link import GONE, Clock, Link, LinkState, LinkStatus
from agent_console.tui.setup import Setup, system_clock
from agent_console.tui.terminal.terminal_app import TerminalApp
from agent_console.tui.themes import THEMES, theme_for
from agent_console.tui.wanted import (
    ActionWanted,
    ListWanted,
    PaneWanted,
    RecordWanted,
    Refused,
    ScreenWanted,
    ThingWanted,
)
from agent_console.tui.widgets.header import HeaderBar, HeaderFacts
from agent_console.tui.widgets.help import HelpScreen
from agent_console.tui.widgets.key_footer import KeyFooter
from agent_console.tui.widgets.notice_bar import NoticeBar

if TYPE_CHECKING:
    # What is needed only once there is something to show waits until the first frame is on the screen.
    from agent_console.domain.agents import PoolStatus
    from agent_console.repository.port import Change
    from agent_console.tui.panes.list_kind import ListKind
    from agent_console.tui.panes.pane import Pane, View
    from agent_console.tui.panes.stacked import StackedScreen
    from agent_console.tui.panes.surroundings import Surroundings

STEP_SECONDS = 0.25
POLL_SECONDS = 5.0
POOL = "pool"
DOING = "doing"
GOING = "going"
DEEPEST = 12
"""So many screens may lie one over another; who jumps in circles is not led on for ever."""


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
        Binding("0", "pane('overview')", "Overview", id="pane.overview"),
        Binding("1", "pane('approvals')", "Approvals", id="pane.approvals"),
        Binding("2", "pane('agents')", "Agents", id="pane.agents"),
        Binding("3", "pane('jobs')", "Jobs", id="pane.jobs"),
        Binding("4", "pane('threads')", "Threads", id="pane.threads"),
        Binding("5", "pane('routes')", "Routes", id="pane.routes"),
        Binding("6", "pane('audit')", "Audit", id="pane.audit"),
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
        self._panes: tuple[Pane, ...] = ()
        self._around: Surroundings | None = None
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
        from agent_console.tui.panes.surroundings import Surroundings

        self._facts = HeaderFacts(setup.profile, setup.production, setup.read_only, setup.colour)
        self.theme = theme_for(setup.theme)
        if setup.keymap:
            self.set_keymap(dict(setup.keymap))
        self._around = Surroundings(self.link, self._clock, setup.read_only)
        panes = every_pane(self._around)
        for pane in panes:
            await self._switcher.add_content(pane)
        if not all(pane.is_attached for pane in panes):
            # Somebody left meanwhile, and the screen is being taken down.
            return
        self._panes = panes
        self.action_pane(setup.start if self._has_pane(setup.start) else "agents")
        self.refresh_bindings()
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
    def pane(self) -> "Pane":
        return next(pane for pane in self._panes if pane.id == self._switcher.current)

    def _has_pane(self, name: str) -> bool:
        return any(pane.pane_name == name for pane in self._panes)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action != "pane" or self._has_pane(str(parameters[0]))

    @property
    def stacked(self) -> "tuple[StackedScreen, ...]":
        """The screens that were opened one from another, the topmost last; help or a dialog may lie over them."""
        from agent_console.tui.panes.stacked import StackedScreen

        return tuple(
            screen for screen in self.screen_stack if isinstance(screen, StackedScreen) and screen.is_mounted
        )

    @property
    def detail(self) -> "StackedScreen | None":
        """The topmost screen that shows one thing whole."""
        return next(reversed(self.stacked), None)

    @property
    def view(self) -> "View":
        """What the operator looks at."""
        return self.detail or self.pane

    @property
    def crumbs(self) -> tuple[str, ...]:
        return (self.pane.crumb, *(screen.crumb for screen in self.stacked))

    @property
    def header_facts(self) -> HeaderFacts:
        return self._facts

    # What time brings

    def _step(self) -> None:
        if self.link.status.state is not LinkState.UP:
            return
        self.view.step()
        from agent_console.tui.panes.pane import is_waiting

        if self._pool_is_dirty and not is_waiting(self, POOL):
            self._pool_is_dirty = False
            self._fetch_pool()

    def _tick(self) -> None:
        self._show_header()
        self.view.tick()

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
        for screen in self.stacked:
            screen.follow(message.status)
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

    def _listeners(self) -> "tuple[View, ...]":
        return (*self._panes, *self.stacked)

    @on(Refused)
    def _was_refused(self, message: Refused) -> None:
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
        self.pane.take_focus()
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

    @on(PaneWanted)
    def _go_to_pane(self, message: PaneWanted) -> None:
        self.action_pane(message.name)

    @on(ListWanted)
    def _go_to_list(self, message: ListWanted) -> None:
        self.run_worker(self._show_list(message.kind), group=DOING)

    async def _show_list(self, kind: "ListKind") -> None:
        """A pane that is there already is shown as it was left."""
        from agent_console.tui.panes.queue_pane import pane_of

        # One after the other: a key pressed twice must not make the same pane twice.
        async with self._adding:
            if self._around is not None and not self._has_pane(kind.name):
                pane = pane_of(kind, self._around)
                await self._switcher.add_content(pane)
                pane.set_stale(self.link.status.state is not LinkState.UP)
                self._panes += (pane,)
        self.action_pane(kind.name)

    @on(RecordWanted)
    def _open_record(self, message: RecordWanted) -> None:
        from agent_console.tui.panes.detail_screen import screen_of

        if self._around is not None:
            self._open_screen(screen_of(message.kind, message.record, self._around))

    @on(ScreenWanted)
    def _open_wanted(self, message: ScreenWanted) -> None:
        self._open_screen(message.screen)

    def _open_screen(self, screen: "StackedScreen") -> None:
        # A key pressed twice must not open twice; a dialog is never covered.
        is_shown = self.detail is not None and self.detail.about == screen.about
        if not self.screen.is_modal and not is_shown and len(self.screen_stack) < DEEPEST:
            self.push_screen(screen)

    @on(ThingWanted)
    def _go_to_thing(self, message: ThingWanted) -> None:
        from agent_console.tui.panes.pane import is_waiting

        if not is_waiting(self, GOING):
            self._fetch_and_open(message.noun, message.thing_id)

    @work(group=GOING)
    async def _fetch_and_open(self, noun: str, thing_id: str) -> None:
        from agent_console.tui.panes.detail_screen import screen_of
        from agent_console.tui.panes.every import KINDS

        kind = KINDS[noun]
        if self._around is None or kind.get_operation is None or kind.asked is None:
            return
        asked_from = self.screen
        try:
            record = await self.link.call(kind.get_operation, kind.asked(thing_id))
        except ConsoleError as error:
            self._was_refused(Refused(error))
            return
        # Whoever went elsewhere meanwhile is not dragged there.
        if self.screen is asked_from:
            self._open_screen(screen_of(kind, record, self._around))

    @on(ActionWanted)
    def _act(self, message: ActionWanted) -> None:
        from agent_console.tui.panes.pane import is_waiting

        # A key pressed twice must not ask twice.
        if not self.screen.is_modal and not is_waiting(self, DOING):
            self._do_something(message)

    @work(group=DOING)
    async def _do_something(self, wanted: ActionWanted) -> None:
        from agent_console.tui.doing import do_something

        wanted.after(await do_something(self, self.link, wanted.subject))

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
