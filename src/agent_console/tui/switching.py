"""The part of the console that goes to a place: the first one, and from there to any other profile or team.

Whoever leaves a place waits for nobody: what was opened there is closed behind one's back, and only who leaves the
console altogether waits for that. Nothing of the old place is shown under the new name.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import ContentSwitcher

from agent_console.domain.errors import ConsoleError
from agent_console.tui.commanding import COMMANDING, DOING, Commanding
from agent_console.tui.header_watch import POOL, WAITING, WHO, HeaderWatch
from agent_console.tui.link import LATE_SECONDS, Clock, Link, LinkStatus, Opening
from agent_console.tui.setup import Setup
from agent_console.tui.waiting_count import Doorbell, Presence
from agent_console.tui.wanted import ScreenWanted
from agent_console.tui.ways_back import WaysBack
from agent_console.tui.widgets.header import HeaderFacts
from agent_console.tui.widgets.notice_bar import NoticeBar
from agent_console.tui.widgets.way_line import WayLine

if TYPE_CHECKING:
    # What is needed only once there is something to show waits until the first frame is on the screen.
    from agent_console.repository.port import Change, Repository
    from agent_console.tui.commands import Command
    from agent_console.tui.panes.pane import Pane
    from agent_console.tui.panes.surroundings import Surroundings
    from agent_console.tui.places import PlaceChosen

SWITCHING = "switching"
CHOOSING = "choosing"
GOING = "going"
LEARNING = "learning"
PROFILES = "app.profiles"


class LinkChanged(Message):
    def __init__(self, status: LinkStatus, link: Link) -> None:
        super().__init__()
        self.status = status
        self.link = link


class Heard(Message):
    def __init__(self, change: "Change", link: Link | None = None) -> None:
        super().__init__()
        self.change = change
        self.link = link


class Switching(Commanding):
    """Has the link to the place one is at, its panes, and what is known of it in the header."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("C", "profiles", "Profile", show=False, id=PROFILES),
        Binding("D", "doctor", "Doctor", show=False, id="app.doctor"),
    ]

    def __init__(self, clock: Clock, *, bell: bool) -> None:
        super().__init__()
        self._clock = clock
        self._doorbell_silent = not bell
        self._presence = Presence()
        self._setup: Setup | None = None
        self._before: Setup | None = None
        """Where one came from, until the new place has answered."""
        self._known_links: dict[str, Link] = {}
        self._place_names: tuple[str, ...] = ()
        self._let_go: dict[asyncio.Task[None], str] = {}
        self._panes: tuple[Pane, ...] = ()
        self._around: Surroundings | None = None
        self._adding = asyncio.Lock()
        # Held rather than looked up: news may come when the screen is already being taken down.
        self._notice = NoticeBar()
        self._way = WayLine()
        self._ways = WaysBack(self)
        self._switcher = ContentSwitcher(initial="loading", id="panes")
        self.refusal: ConsoleError | None = None
        self._begin_anew()

    def _begin_anew(self) -> None:
        """A link that leads nowhere yet, and a header that knows nothing."""
        self.link = self._new_link()
        doorbell = Doorbell(self._clock, self._doorbell_silent)
        self._header = HeaderWatch(self, self.link, self._clock, doorbell, self._presence)

    def _be_at(self, setup: Setup) -> None:
        self._setup = setup
        self._header.facts = HeaderFacts(setup.profile, setup.production, setup.read_only, setup.colour)

    def _new_link(self) -> Link:
        def refuse(error: ConsoleError) -> None:
            if link is self.link:
                self._refuse(error)

        def tell_late(error: ConsoleError) -> None:
            if link is self.link:
                self._say(f"{error.message} It is asked again in {LATE_SECONDS:g} s.")

        link = Link(
            on_status=lambda status: self._tell(LinkChanged(status, link)),
            on_change=lambda change: self._tell(Heard(change, link)),
            clock=self._clock,
            on_refusal=refuse,
            on_late=tell_late,
        )
        return link

    def _tell(self, news: LinkChanged | Heard) -> None:
        self.post_message(news)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        match action:
            case "profiles":
                return self._setup is not None and self._setup.places is not None
            case "doctor":
                return self._setup is not None and self._setup.examine is not None
        return super().check_action(action, parameters)

    # Coming and going

    async def _arrive(self, setup: Setup, start: str) -> bool:
        """Show the place's first pane, still empty, and set out for it. False when somebody left meanwhile."""
        await asyncio.to_thread(import_module, "agent_console.tui.panes.every")
        from agent_console.tui.panes.every import PANES
        from agent_console.tui.panes.surroundings import Surroundings

        await self.take_keymap(setup.keymap)
        self._around = Surroundings(self.link, self._clock, setup.read_only)
        first = PANES.get(start, PANES["agents"])(self._around)
        await self._switcher.add_content(first)
        if not first.is_attached:
            # Somebody left meanwhile, and the screen is being taken down.
            return False
        self._panes = (first,)
        self._keep_drafts(setup.profile)
        self.action_pane(first.pane_name)
        self.refresh_bindings()
        self.link.start(self._after_the_last(setup))
        self._learn_places(setup)
        return True

    async def _leave_for(self, setup: Setup) -> None:
        """Nothing of the old place is left on the screen when this first waits for anything."""
        link, panes, left = self.link, self._panes, self._setup
        for group in (POOL, WAITING, WHO, GOING, DOING, COMMANDING, CHOOSING):
            # Also whoever waits for a dialog that is about to go: nobody would ever answer.
            self.workers.cancel_group(self, group)
        while len(self.screen_stack) > 1:
            self.pop_screen()
        self._ways.forget()
        self._way.show(())
        self._switcher.current = "loading"
        self._panes, self._around = (), None
        self._header.noticed()
        self._doorbell_silent = self._header.doorbell.silent
        self._begin_anew()
        self._be_at(setup)
        self._header.show()
        self._notice.follow(self.link.status)
        closing = asyncio.create_task(link.close(), name="letting go")
        self._let_go[closing] = "" if left is None else left.profile
        closing.add_done_callback(self._let_go.pop)
        if left is None or left.theme != setup.theme:
            self.show_theme(setup.theme)
        self.set_keymap({})
        for pane in panes:
            await pane.remove()

    def _keep_drafts(self, profile: str) -> None:
        """What somebody was about to say stays with the place where it would be said."""
        from agent_console.tui.panes.conversation.drafts import keep_drafts

        if (earlier := self._known_links.get(profile)) is not None:
            keep_drafts(earlier, self.link)
        self._known_links[profile] = self.link

    def _after_the_last(self, setup: Setup) -> Opening:
        """Whoever comes back waits until what was opened there before is closed: two would hold one database."""
        closing = [task for task, profile in self._let_go.items() if profile == setup.profile]
        if not closing:
            return setup.opening

        @asynccontextmanager
        async def opening(say: Callable[[str], None]) -> "AsyncIterator[Repository]":
            await asyncio.wait(closing)
            async with setup.opening(say) as repository:
                yield repository

        return opening

    async def _close_links(self) -> None:
        await self.link.close()
        while self._let_go:
            await asyncio.wait(self._let_go)

    def _refuse(self, error: ConsoleError) -> None:
        """There is nothing to wait for: go back to where one came from, or end with a sentence."""
        if self._before is None:
            self.refusal = error
            self.exit(return_code=error.exit_code)
            return
        back, self._before = self._before, None
        self._say(f"{self._header.facts.profile}: {error}")
        self.run_worker(self._go_to_place(back), group=SWITCHING)

    def _has_arrived(self) -> None:
        """The place has answered: it is a place to stay at, whatever becomes of it."""
        self._before = None

    # What the operator asks for

    @work(group=LEARNING)
    async def _learn_places(self, setup: Setup) -> None:
        """Their names, which the command line offers; what is wrong with the file is told to who goes there."""
        if setup.places is not None:
            with suppress(ConsoleError):
                self._place_names = tuple(place.name for place in await asyncio.to_thread(setup.places.listed))

    def action_profiles(self) -> None:
        from agent_console.tui.panes.pane import is_waiting

        if self._panes and not self.screen.is_modal and not is_waiting(self, CHOOSING):
            self._choose_place()

    @work(group=CHOOSING)
    async def _choose_place(self) -> None:
        from agent_console.tui.dialogs.profiles import ProfilesDialog

        if self._setup is None or self._setup.places is None:
            return
        try:
            known = await asyncio.to_thread(self._setup.places.listed)
        except ConsoleError as error:
            self._say(str(error))
            return
        chosen = await self.push_screen_wait(ProfilesDialog(known, self._header.facts.profile))
        if chosen is not None:
            self._switch_to(chosen)

    @work(group=SWITCHING)
    async def _switch_to(self, chosen: "PlaceChosen") -> None:
        """A profile that can't be used is told, and one stays where one is."""
        here = self._setup
        if here is None or here.places is None:
            return
        try:
            setup = await asyncio.to_thread(here.places.setup_of, chosen)
        except ConsoleError as error:
            self._say(str(error))
            return
        self._before = here
        await self._go_to_place(setup)

    async def _go_to_place(self, setup: Setup) -> None:
        start = self.pane_shown
        async with self._adding:
            await self._leave_for(setup)
            await self._arrive(setup, start)

    @property
    def pane_shown(self) -> str:
        """The pane with a key on which one stands, or to which what is shown belongs."""
        shown = next((pane for pane in self._panes if pane.id == self._switcher.current), None)
        return "overview" if shown is None else shown.tab

    def _commands(self) -> "tuple[Command, ...]":
        """What one types behind it is where to go; without that, one is asked."""
        summary, argument = "Go to another profile, or to another team", "NAME TEAM"
        return tuple(
            replace(command, summary=summary, argument=argument, values=self._place_names, others=True)
            if command.what == PROFILES
            else command
            for command in super()._commands()
        )

    async def _obey(self, command: "Command", rest: str) -> None:
        from agent_console.tui.places import PlaceChosen

        if command.what != PROFILES or not rest:
            await super()._obey(command, rest)
            return
        name, _, team = rest.partition(" ")
        self._switch_to(PlaceChosen(name, team.strip() or None))

    def action_doctor(self) -> None:
        from agent_console.tui.panes.doctor_screen import DoctorScreen

        if self._around is not None and self._setup is not None and self._setup.examine is not None:
            self.post_message(ScreenWanted(DoctorScreen(self._around, self._setup.examine)))
