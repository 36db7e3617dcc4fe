"""A screen that tells something about two agents, as long as it is, to be scrolled through."""

from typing import ClassVar

from textual import work
from textual.binding import Binding, BindingType

from agent_console.domain.errors import ConsoleError
from agent_console.repository.port import Change, Topic
from agent_console.tui.agent_text import agent_text, system_text
from agent_console.tui.facts import FactSheet, Heading, Remark, SheetPart
from agent_console.tui.link import GONE
from agent_console.tui.panes.pane import is_waiting
from agent_console.tui.panes.panel_screen import PanelScreen, reading_bindings
from agent_console.tui.panes.routes.looks import pair_text
from agent_console.tui.panes.routes.pair import RoutePair
from agent_console.tui.panes.surroundings import Surroundings

ASKING = "asking"


class RouteSheet(PanelScreen):
    """Asks in `ask` and tells in `parts`; the last that was told stays when it can't be had again."""

    TOPICS: ClassVar[frozenset[Topic]] = frozenset({Topic.ROUTES})
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter", "close", "Back", id="sheet.close"),
        *reading_bindings("sheet"),
    ]

    def __init__(self, around: Surroundings, pair: RoutePair) -> None:
        super().__init__(around)
        self.pair = pair
        self._dirty = True
        self._has_answer = False
        self._problem = ""

    async def ask(self) -> None:
        raise NotImplementedError

    def parts(self) -> tuple[SheetPart, ...]:
        raise NotImplementedError

    @property
    def has_answer(self) -> bool:
        return self._has_answer or bool(self._problem)

    @property
    def about(self) -> str:
        return f"{type(self).__name__} {self.pair.of} {self.pair.to}"

    def heard(self, change: Change) -> None:
        self._dirty |= change.topic in self.TOPICS or change.topic is Topic.EVERYTHING

    def step(self) -> None:
        if self._dirty and not is_waiting(self, ASKING):
            self._dirty = False
            self._fetch()

    def set_stale(self, stale: bool) -> None:
        self._panel.set_stale(stale)
        self._dirty = True
        if stale:
            self.workers.cancel_node(self)

    def tick(self) -> None:
        heading = Heading(pair_text(self.pair.of_name, self.pair.to_name))
        if self._has_answer:
            told = self.parts()
        else:
            told = () if self._problem else (Remark(system_text("Loading …", "$foreground-muted")),)
        problem = Remark(agent_text(f"✗ {self._problem}", "$text-error", limit=600))
        self._panel.show(FactSheet((heading, *([problem] if self._problem else []), *told)))

    @work(group=ASKING)
    async def _fetch(self) -> None:
        try:
            await self.ask()
        except ConsoleError as error:
            self._problem = str(error)
            self._dirty = isinstance(error, GONE)
        else:
            self._problem, self._has_answer = "", True
        self.tick()
