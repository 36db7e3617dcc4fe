"""Where to go: the profiles of the configuration file, what they are, and whether they answer."""

import asyncio
from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from agent_console.domain.errors import ConsoleError
from agent_console.domain.records import Nothing
from agent_console.repository.operations import ME
from agent_console.tui.agent_text import agent_text, system_text
from agent_console.tui.dialogs.dialog import Dialog
from agent_console.tui.places import OWN_TOKEN, KnownPlace, PlaceChosen
from agent_console.tui.widgets.still_input import StillInput

PATIENCE_SECONDS = 5.0
NAME_SHOWN = 24
NAME_CELLS = 18
PLACE_SHOWN = 200
ANSWER_SHOWN = 120
TEAM_MOST = 63
HINT = "Enter go there   t another team   Esc stay"
LOOKING = system_text("… asking", "$foreground-muted")
HERE = system_text("· you are here", "$foreground-muted")
NOT_TRIED = system_text("· starts when you go there", "$foreground-muted")


def _silently(_: str) -> None:
    """How far the opening is matters to nobody who only looks."""


class ProfilesDialog(Dialog[PlaceChosen | None]):
    """Each place is asked on its own and in the background: one that hangs keeps nobody from going to another."""

    LINES_AROUND = 10
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Stay", id="profiles.close"),
        Binding("t", "team", "Another team", id="profiles.team"),
    ]

    def __init__(self, known: Sequence[KnownPlace], here: str) -> None:
        super().__init__()
        self._known = {place.name: place for place in known}
        self._here = here
        self._told = {place.name: _first_words(place, here) for place in known}
        self._list = OptionList(*(Option(self._line(place), id=place.name) for place in known), classes="scrolls")
        self._team = StillInput(placeholder="short name of the team", compact=True, max_length=TEAM_MOST)
        self._words = Static(system_text(""), classes="problem")

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(system_text("Go to another profile", "bold"), classes="about")
            yield self._list
            yield self._team
            yield self._words
            yield Static(system_text(HINT, "$foreground-muted"), classes="hint")

    def on_mount(self) -> None:
        self._team.display = False
        names = list(self._known)
        self._list.highlighted = names.index(self._here) if self._here in names else 0
        self._list.focus()
        for place in self._known.values():
            if place.look is not None and not place.problem:
                self.run_worker(self._ask(place), group=f"look-{place.name}")

    @property
    def has_looked(self) -> bool:
        """Whether every place that is asked has answered, or has not for long enough."""
        return LOOKING not in self._told.values()

    async def _ask(self, place: KnownPlace) -> None:
        if place.look is None:
            return
        try:
            async with asyncio.timeout(PATIENCE_SECONDS), place.look(_silently) as repository:
                me = await repository.call(ME, Nothing())
            words = agent_text(f"✓ answers, team {me.team}", "$text-success", limit=ANSWER_SHOWN)
        except TimeoutError:
            words = system_text(f"✗ no answer for {PATIENCE_SECONDS:g} s", "$text-error")
        except ConsoleError as error:
            words = agent_text(f"✗ {error.message}", "$text-error", limit=ANSWER_SHOWN)
        self._told[place.name] = words
        self._list.replace_option_prompt(place.name, self._line(place))

    def _line(self, place: KnownPlace) -> Content:
        mark = "● " if place.name == self._here else "○ "
        shown = system_text(mark) + agent_text(place.name, "bold", limit=NAME_SHOWN)
        shown = shown.pad_right(max(1, NAME_CELLS - shown.cell_length))
        if place.production:
            shown += system_text(" production ", "auto on $error bold") + system_text(" ")
        if place.read_only:
            shown += system_text("read-only ", "$text-warning")
        shown += system_text(f"{place.kind} ") + agent_text(place.leads_to, "$foreground-muted", limit=PLACE_SHOWN)
        return system_text("\n").join([shown, self._told[place.name]])

    @on(OptionList.OptionSelected)
    def _chosen(self, message: OptionList.OptionSelected) -> None:
        if message.option.id is not None:
            self._go(PlaceChosen(message.option.id))

    def _go(self, chosen: PlaceChosen) -> None:
        place = self._known[chosen.name]
        if place.problem:
            self._say(place.problem)
        elif chosen.name == self._here and chosen.team is None:
            self.dismiss(None)
        else:
            self.dismiss(chosen)

    def action_team(self) -> None:
        place = self._highlighted()
        if place is None or self._team.has_focus:
            return
        if place.one_team:
            self._say(OWN_TOKEN)
            return
        self._say("")
        self._team.display = True
        # At once: the next key may be waiting already, and it is text.
        self.set_focus(self._team)

    @on(Input.Submitted)
    def _team_named(self, message: Input.Submitted) -> None:
        place, team = self._highlighted(), message.value.strip()
        if place is not None and team:
            self._go(PlaceChosen(place.name, team))

    def _highlighted(self) -> KnownPlace | None:
        index = self._list.highlighted
        option = None if index is None else self._list.get_option_at_index(index)
        return None if option is None or option.id is None else self._known[option.id]

    def _say(self, words: str) -> None:
        self._words.update(agent_text(words, "$text-error", limit=300))

    def action_leave(self) -> None:
        if self._team.display:
            self._team.display = False
            self._list.focus()
            return
        self.dismiss(None)


def _first_words(place: KnownPlace, here: str) -> Content:
    if place.problem:
        return agent_text(f"✗ {place.problem}", "$text-error", limit=ANSWER_SHOWN)
    if place.name == here and place.look is None:
        return HERE
    return NOT_TRIED if place.look is None else LOOKING
