"""The console: wires header, panes and the link together, and does nothing else."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static

from agent_console.domain.errors import ConsoleError
from agent_console.tui.agent_text import agent_text, system_text
from agent_console.tui.commanding import DOING
from agent_console.tui.far_clock import FarClock
from agent_console.tui.link import GONE, Clock, LinkState, LinkStatus
from agent_console.tui.setup import Setup
from agent_console.tui.switching import GOING, Heard, LinkChanged, Switching
from agent_console.tui.themes import THEMES, theme_for
from agent_console.tui.wanted import (
    ActionWanted,
    BackWanted,
    ListWanted,
    PaneWanted,
    RecordWanted,
    Refused,
    ScreenWanted,
    ThingWanted,
)
from agent_console.tui.ways_back import Way
from agent_console.tui.widgets.header import HeaderBar, HeaderFacts
from agent_console.tui.widgets.help import HelpScreen
from agent_console.tui.widgets.key_footer import KeyFooter
from agent_console.tui.widgets.pane_tabs import PaneTabs, tabs_of

if TYPE_CHECKING:
    # What is needed only once there is something to show waits until the first frame is on the screen.
    from agent_console.tui.panes.list_kind import ListKind
    from agent_console.tui.panes.pane import Pane, View
    from agent_console.tui.panes.stacked import StackedScreen

STEP_SECONDS = 0.25
POLL_SECONDS = 5.0
DEEPEST = 12
"""So many screens may lie one over another; who jumps in circles is not led on for ever."""


class ConsoleApp(Switching):
    TITLE = "agent-console"
    CSS_PATH = "styles.tcss"
    ENABLE_COMMAND_PALETTE = False

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark", "help", "Help", id="app.help"),
        Binding("0", "pane('overview')", "Overview", show=False, id="pane.overview"),
        Binding("1", "pane('approvals')", "Approvals", show=False, id="pane.approvals"),
        Binding("2", "pane('agents')", "Agents", show=False, id="pane.agents"),
        Binding("3", "pane('jobs')", "Jobs", show=False, id="pane.jobs"),
        Binding("4", "pane('threads')", "Threads", show=False, id="pane.threads"),
        Binding("5", "pane('routes')", "Routes", show=False, id="pane.routes"),
        Binding("6", "pane('audit')", "Audit", show=False, id="pane.audit"),
        Binding("7", "more", "More", show=False, id="pane.more"),
        Binding("ctrl+l", "redraw", "Redraw", show=False, id="app.redraw"),
        Binding("B", "toggle_bell", "Bell on or off", show=False, id="app.bell"),
        Binding("q", "leave", "Quit", id="app.quit"),
        Binding("ctrl+c,ctrl+q", "leave", "Quit", show=False, priority=True, id="app.quit_now"),
    ]

    def __init__(
        self,
        prepare: Callable[[], Setup],
        *,
        theme_name: str = "dark",
        clock: Clock | None = None,
        bell: bool = True,
    ) -> None:
        """`prepare` may be slow: it is called off the event loop, behind the first frame."""
        super().__init__(clock or FarClock(), bell=bell)
        self._prepare = prepare
        self._leaving = False
        self._tabs = PaneTabs()
        for theme in THEMES.values():
            self.register_theme(theme)
        self.theme = theme_for(theme_name)

    def compose(self) -> ComposeResult:
        yield HeaderBar(self.header_facts)
        yield self._notice
        yield self._tabs
        yield self._way
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
        self._be_at(setup)
        self.theme = theme_for(setup.theme)
        if not await self._arrive(setup, setup.start):
            return
        self.set_interval(STEP_SECONDS, self._step)
        self.set_interval(1.0, self._tick)
        self.set_interval(POLL_SECONDS, self._poll)

    async def on_unmount(self) -> None:
        """Whichever way the app ends, what was started for it ends too."""
        self._header.noticed()
        await self._close_links()

    @property
    def has_panes(self) -> bool:
        """False while the first frame is all there is."""
        return bool(self._panes) and self.link.is_started

    @property
    def pane(self) -> "Pane":
        return next(pane for pane in self._panes if pane.id == self._switcher.current)

    def _has_pane(self, name: str) -> bool:
        return any(pane.pane_name == name for pane in self._panes)

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
        return (*self._ways.crumbs, self.pane.crumb, *(screen.crumb for screen in self.stacked))

    @property
    def header_facts(self) -> HeaderFacts:
        return self._header.facts

    # What time brings

    def _step(self) -> None:
        self._focus_pane()
        if self.link.status.state is not LinkState.UP:
            return
        self.view.step()
        self._header.step()

    def _tick(self) -> None:
        self._header.show()
        if self._panes:
            self.view.tick()

    def _poll(self) -> None:
        """Notices can get lost; looking again cannot."""
        from agent_console.repository.port import REFETCH

        self._header.heard()
        for listener in self._listeners():
            listener.heard(REFETCH)

    # What the link tells

    @on(LinkChanged)
    def _link_changed(self, message: LinkChanged) -> None:
        if message.link is not self.link or not self.screen_stack:
            # It tells of a place that was left, or a console that is being closed.
            return
        up = message.status.state is LinkState.UP
        self._notice.follow(message.status)
        for pane in self._panes:
            pane.set_stale(not up)
        for screen in self.stacked:
            screen.follow(message.status)
        if up:
            self._has_arrived()
            self._header.heard()
            self._step()
        # Which keys there are depends on who we are, and on whether anything can be done at all.
        self.refresh_bindings()
        self._header.show()

    @on(Heard)
    def _heard(self, message: Heard) -> None:
        if message.link not in (None, self.link):
            return
        self._header.heard(message.change)
        for listener in self._listeners():
            listener.heard(message.change)

    def _listeners(self) -> "tuple[View, ...]":
        return (*self._panes, *self.stacked)

    @on(Refused)
    def _was_refused(self, message: Refused) -> None:
        if not isinstance(message.error, GONE):
            self.notify(agent_text(str(message.error), limit=500).plain, severity="warning", markup=False)

    @on(events.AppFocus)
    def _noticed(self) -> None:
        self._header.noticed()

    def action_toggle_bell(self) -> None:
        """For this session; the profile says how it begins."""
        doorbell = self._header.doorbell
        doorbell.silent = not doorbell.silent
        words = "The bell is off." if doorbell.silent else "The bell rings when something new has to be decided."
        self.notify(words, markup=False)

    # What the operator does

    def action_pane(self, name: str) -> None:
        """Whoever goes elsewhere begins a new way."""
        self._ways.forget()
        self._show_pane(name)

    def _show_pane(self, name: str) -> None:
        if not self._panes:
            return
        while len(self.screen_stack) > 1:
            self.pop_screen()
        self._make_pane(name)
        self._switcher.current = f"pane-{name}"
        self._way.show(self.crumbs)
        self._tabs.show(tabs_of(self.screen.active_bindings.values()), self.pane.tab)
        if self.pane.is_mounted:
            self.pane.take_focus()
        else:
            self.pane.call_after_refresh(self._focus_pane)
        self.pane.tick()
        self._step()

    def _focus_pane(self) -> None:
        """The keys go to what is shown, also when what lies over it is closed. A pane that is still being mounted
        can't take them and nobody says so: it is looked at again with every step."""
        if not self._panes or not self.screen_stack or not self.pane.is_mounted:
            return
        focused = self.screen_stack[0].focused
        if focused is None or self.pane not in focused.ancestors_with_self:
            self.pane.take_focus()

    def _make_pane(self, name: str) -> None:
        """A pane with a key is made when somebody first goes there."""
        from agent_console.tui.panes.every import PANES

        if self._around is None or self._has_pane(name):
            return
        pane = PANES[name](self._around)
        pane.display = False
        self._switcher.mount(pane)
        pane.set_stale(self.link.status.state is not LinkState.UP)
        self._panes += (pane,)

    @on(PaneTabs.Chosen)
    async def _clicked(self, message: PaneTabs.Chosen) -> None:
        await self.run_action(message.action)

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

    @on(BackWanted)
    def _go_back(self, message: BackWanted) -> None:
        if (way := self._ways.back_from(self.pane.pane_name)) is None:
            self.action_pane(message.belongs_to)
            return
        self._show_pane(way.pane)
        for screen in way.screens:
            self.push_screen(screen)
            screen.come_back()

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
        if not kind.above:
            self.action_pane(kind.name)
        elif self.stacked or self.pane.pane_name != kind.name:
            steps = self.crumbs[len(self._ways.crumbs) :]
            self._ways.keep(Way(kind.name, self.pane.pane_name, self.stacked, steps))
            self._show_pane(kind.name)

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
        await self._close_links()
        self.exit()
