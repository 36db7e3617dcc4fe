"""The whole screen for one thing of a list, where there is no room beside the list."""

from functools import partial
from typing import ClassVar

from textual import work
from textual.binding import Binding, BindingType

from agent_console.domain.errors import ConsoleError, NotFound
from agent_console.domain.records import Record
from agent_console.repository.port import REFETCH, Change
from agent_console.tui.actions import row_actions
from agent_console.tui.agent_text import system_text
from agent_console.tui.facts import FactSheet, Heading
from agent_console.tui.link import GONE
from agent_console.tui.panes.derived import title_of
from agent_console.tui.panes.detail_part import PartSoFar
from agent_console.tui.panes.list_kind import ListKind
from agent_console.tui.panes.pane import ask, is_waiting
from agent_console.tui.panes.panel_screen import PanelScreen, reading_bindings
from agent_console.tui.panes.related import related_bindings
from agent_console.tui.panes.stacked import StackedScreen
from agent_console.tui.panes.surroundings import Surroundings
from agent_console.tui.subject import Subject
from agent_console.tui.wanted import ActionWanted, ListWanted, Refused, ThingWanted

ITSELF = "itself"
GONE_FOR_GOOD = Heading(
    system_text("It no longer exists. This is the last that was known of it.", "$text-warning")
)


class DetailScreen(PanelScreen):
    """Fetches its own thing, because the list behind it may have none of it any more."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter", "close", "Back", id="detail.close"),
        Binding("a", "act", "Actions", id="detail.act"),
        *related_bindings("detail", shown=True),
        *reading_bindings("detail"),
    ]

    def __init__(self, kind: ListKind, record: Record, around: Surroundings) -> None:
        super().__init__(around)
        self.kind = kind
        self._record = record
        self._is_gone = False
        self._dirty = True
        self._parts = {part.title: PartSoFar(part) for part in kind.parts}
        self._dirty_parts = set(self._parts)

    @property
    def crumb(self) -> str:
        return title_of(self._record)

    @property
    def looked_at(self) -> tuple[ListKind, Record]:
        return self.kind, self._record

    @property
    def about(self) -> str:
        return f"{self.kind.list_operation.noun} {getattr(self._record, self.kind.key)}"

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        match action:
            case "below":
                return parameters[0] in self.kind.below
            case "jump":
                return self.kind.leads_to(str(parameters[0]), self._record) is not None
            case "act":
                role = self.around.acting_as
                return not self._is_gone and role is not None and bool(row_actions(self.kind.list_operation, role))
        return True

    @property
    def has_answer(self) -> bool:
        return all(so_far.known or so_far.problem for so_far in self._parts.values())

    def set_stale(self, stale: bool) -> None:
        self._panel.set_stale(stale or self._is_gone)
        self._dirty = True
        self._dirty_parts = set(self._parts)
        if stale:
            self.workers.cancel_node(self)

    def heard(self, change: Change) -> None:
        """Something may have changed; it is looked at with the next step."""
        self._dirty = True
        itself = str(getattr(self._record, self.kind.key))
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
            ask(self, name, partial(self._fetch_part, name))

    def tick(self) -> None:
        sheet = self.kind.sheet(self._record, self.around.clock(), self._parts.values())
        self._panel.show(FactSheet((GONE_FOR_GOOD, *sheet.parts)) if self._is_gone else sheet)

    @work(group=ITSELF)
    async def _fetch(self) -> None:
        try:
            self._take(await self._as_it_is_now())
        except NotFound:
            self._is_gone = True
            self.refresh_bindings()
            self._panel.set_stale(True)
        except GONE:
            self._dirty = True
            return
        except ConsoleError as error:
            self.post_message(Refused(error))
            return
        self.tick()

    async def _as_it_is_now(self) -> Record:
        """The same thing again; where nothing gives just one, what the list told of it."""
        if self.kind.get_operation is None or self.kind.asked is None:
            return self._record
        asked = self.kind.asked(str(getattr(self._record, self.kind.key)))
        answer: Record = await self.around.link.call(self.kind.get_operation, asked)
        return answer

    def _take(self, record: Record) -> None:
        """What a part asks may depend on how the thing stands: then it has to be asked anew."""
        parts = ((name, so_far.part) for name, so_far in self._parts.items())
        self._dirty_parts |= {name for name, part in parts if part.asked(record) != part.asked(self._record)}
        self._record = record

    async def _fetch_part(self, name: str) -> None:
        so_far = self._parts[name]
        try:
            answer = await so_far.part.fetch(self.around.link, self._record, so_far.answer)
            self._parts[name] = so_far.answered(answer)
        except ConsoleError as error:
            self._parts[name] = so_far.failed(str(error))
            if isinstance(error, GONE):
                self._dirty_parts.add(name)
        self.tick()

    def action_act(self) -> None:
        self.post_message(
            ActionWanted(
                Subject(self.kind, self.kind.query(self.kind.groups[0].key, 1, None), self._record), self._acted
            )
        )

    def _acted(self, done: bool) -> None:
        if done and self.kind.get_operation is None:
            # Nobody can say how it stands now but the list it came from.
            self.dismiss(None)
            return
        self.heard(REFETCH)
        if self.around.up:
            self.step()

    def action_below(self, name: str) -> None:
        self.post_message(ListWanted(self.kind.below[name](self._record)))

    def action_jump(self, noun: str) -> None:
        if (thing_id := self.kind.leads_to(noun, self._record)) is not None:
            self.post_message(ThingWanted(noun, thing_id))


def screen_of(kind: ListKind, record: Record, around: Surroundings) -> StackedScreen:
    """What is opened for one record."""
    return (kind.screen or DetailScreen)(kind, record, around)
