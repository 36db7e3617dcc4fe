"""The console: wires header, panes and the link together, and does nothing else."""

import asyncio
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING, ClassVar

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static

from agent_console.domain.errors import ConsoleError
from agent_console.tui.agent_text import agent_text, system_text
from agent_console.tui.commanding import DOING
from agent_console.tui.far_clock import FarClock
from agent_console.tui.going import Going
from agent_console.tui.help import HelpScreen
from agent_console.tui.link import GONE, Clock, LinkState, LinkStatus
from agent_console.tui.setup import Setup
from agent_console.tui.switching import Heard, LinkChanged
from agent_console.tui.themes import THEMES, theme_for
from agent_console.tui.wanted import ActionWanted, Refused
from agent_console.tui.widgets.header import HeaderBar, HeaderFacts
from agent_console.tui.widgets.key_footer import KeyFooter

if TYPE_CHECKING:
    # What is needed only once there is something to show waits until the first frame is on the screen.
    from agent_console.tui.panes.pane import View

STEP_SECONDS = 0.25
POLL_SECONDS = 5.0


class ConsoleApp(Going):
    TITLE = "agent-console"
    CSS_PATH = "styles.tcss"
    ENABLE_COMMAND_PALETTE = False

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark", "help", "Help", id="app.help"),
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
        self._refusals: dict[str, float] = {}
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
    def header_facts(self) -> HeaderFacts:
        return self._header.facts

    # What time brings

    def _tick(self) -> None:
        self._header.show()
        if self._panes:
            self.view.tick()

    def _poll(self) -> None:
        """Notices can get lost; looking again cannot."""
        from agent_console.repository.port import REFETCH

        self._header.heard(REFETCH)
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
        if isinstance(message.error, GONE):
            return
        words = agent_text(str(message.error), limit=500).plain
        now = monotonic()
        self._refusals = {told: until for told, until in self._refusals.items() if until > now}
        # What is asked again and again is refused again and again: the sentence is on the screen already.
        if words not in self._refusals:
            self._refusals |= {words: now + self.NOTIFICATION_TIMEOUT}
            self.notify(words, severity="warning", markup=False)

    @on(events.AppFocus)
    def _noticed(self) -> None:
        self._header.noticed()

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.AppFocus | events.AppBlur):
            self._presence.tells_focus = True
        elif isinstance(event, events.Key):
            self._presence.pressed()
            self._header.noticed()
        await super().on_event(event)

    def action_toggle_bell(self) -> None:
        """For this session; the profile says how it begins."""
        doorbell = self._header.doorbell
        doorbell.silent = not doorbell.silent
        words = "The bell is off." if doorbell.silent else "The bell rings when something new has to be decided."
        self.notify(words, markup=False)

    # What the operator does

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
