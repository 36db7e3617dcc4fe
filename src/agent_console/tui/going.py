"""The part of the console that goes from one thing to another: panes, lists and screens, and the way back."""

from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.binding import BindingType

from agent_console.domain.errors import ConsoleError
from agent_console.tui.commanding import DOING
from agent_console.tui.link import Clock, LinkState
from agent_console.tui.switching import GOING, Switching
from agent_console.tui.wanted import (
    BackWanted,
    ListWanted,
    PaneWanted,
    RecordWanted,
    Refused,
    ScreenWanted,
    ThingWanted,
)
from agent_console.tui.ways_back import Way
from agent_console.tui.widgets.pane_tabs import MORE_KEY, PANE_KEYS, PaneTabs, tabs_of

if TYPE_CHECKING:
    # What is needed only once there is something to show waits until the first frame is on the screen.
    from agent_console.tui.panes.list_kind import ListKind
    from agent_console.tui.panes.pane import Pane, View
    from agent_console.tui.panes.stacked import StackedScreen

LISTS_KEPT = 20
DEEPEST = 12
"""So many screens may lie one over another; who jumps in circles is not led on for ever."""
TOO_DEEP = (
    "Too many screens lie one over another to open one more. Esc leads back; the key of a pane leaves them all."
)


class Going(Switching):
    """Knows what is shown, and what lies below it."""

    BINDINGS: ClassVar[list[BindingType]] = [*PANE_KEYS, MORE_KEY]

    def __init__(self, clock: Clock, *, bell: bool) -> None:
        super().__init__(clock, bell=bell)
        self._tabs = PaneTabs()

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
        """None between two places: a screen that comes to light while the old one is left asks too."""
        if not self._panes:
            return ()
        return (*self._ways.crumbs, self.pane.crumb, *(screen.crumb for screen in self.stacked))

    def _step(self) -> None:
        self._focus_pane()
        if self.link.status.state is not LinkState.UP:
            return
        self.view.step()
        self._header.step()

    # Panes

    def action_pane(self, name: str) -> None:
        """Whoever goes elsewhere begins a new way."""
        if self.detail is not None and not self.detail.may_leave():
            return
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
        if self._panes and not self.screen.is_modal:
            self._choose_list()

    @work(group=DOING)
    async def _choose_list(self) -> None:
        from agent_console.tui.dialogs.list_menu import ListMenu
        from agent_console.tui.panes.every import MORE

        noun = await self.push_screen_wait(ListMenu(tuple(self._readable(MORE))))
        if noun is not None:
            await self._show_list(MORE[noun])

    @on(PaneWanted)
    def _go_to_pane(self, message: PaneWanted) -> None:
        self.action_pane(message.name)

    @on(BackWanted)
    def _go_back(self, message: BackWanted) -> None:
        if not self._panes:
            return
        if (way := self._ways.back_from(self.pane.pane_name)) is None:
            self.action_pane(message.belongs_to)
            return
        self._show_pane(way.pane)
        for screen in way.screens:
            self.push_screen(screen)
            screen.come_back()

    # Lists

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
        await self._give_back_panes()

    async def _give_back_panes(self) -> None:
        """A list of one thing stays as it was left, but whoever opens hundreds does not keep them all."""
        async with self._adding:
            if not self._panes:
                return
            needed = {self.pane.pane_name, *self._ways.panes}
            of_one_thing = [pane for pane in self._panes if pane.tab != pane.pane_name]
            spare = [pane for pane in of_one_thing[:-LISTS_KEPT] if pane.pane_name not in needed]
            self._panes = tuple(pane for pane in self._panes if pane not in spare)
            for pane in spare:
                await pane.remove()

    # Screens

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
        if self.screen.is_modal or is_shown:
            return
        if len(self.screen_stack) < DEEPEST:
            self.push_screen(screen)
        else:
            self._say(TOO_DEEP)

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
            self.post_message(Refused(error))
            return
        # Whoever went elsewhere meanwhile is not dragged there.
        if self.screen is asked_from:
            self._open_screen(screen_of(kind, record, self._around))
