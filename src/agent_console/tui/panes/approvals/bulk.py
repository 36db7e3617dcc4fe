"""Several requests of one agent to one other, decided together: each is read, each has its own decision."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, ClassVar

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import ModalScreen

from agent_console.domain.approvals import Approval, ApprovalAsked, ApprovalListed, Approving, Rejecting
from agent_console.domain.errors import ConsoleError
from agent_console.domain.ids import ApprovalId
from agent_console.repository.operations.approvals import APPROVALS_APPROVE, APPROVALS_GET, APPROVALS_REJECT
from agent_console.tui.agent_text import agent_text, system_text
from agent_console.tui.dialogs.approve_question import ApproveQuestion
from agent_console.tui.dialogs.reject_form import ReasonForm
from agent_console.tui.facts import FactSheet, Heading, Quote, Remark, SheetPart
from agent_console.tui.link import GONE, UNSURE, NotSent
from agent_console.tui.panes.approvals.looks import pair_text, waits
from agent_console.tui.panes.approvals.offer import GRACE_SECONDS, NO_CONNECTION, in_grace, may_decide
from agent_console.tui.panes.approvals.sheet import DIGEST_SHOWN, facts_of_one, request_parts
from agent_console.tui.panes.pane import is_waiting
from agent_console.tui.panes.panel_screen import PanelScreen, reading_bindings
from agent_console.tui.panes.surroundings import Surroundings
from agent_console.tui.widgets.changing_line import ChangingLine
from agent_console.tui.widgets.request_panel import RequestPanel

MOST = 50
READING, DECIDING = "reading", "deciding"
SAID_SHOWN = 300
NOT_KNOWN = "? not known: the connection was lost while it was decided"
HERE, ELSEWHERE = "PgUp and PgDn show why", "look at them again"
NOT_SENT = "- not decided: there was no connection, nothing was sent"


@dataclass
class Kept:
    """Words that are laid out once for each width: an outcome above them does not change them."""

    quote: Quote
    _lines: dict[int, list[Content]] = field(default_factory=dict)

    def lines(self, width: int) -> list[Content]:
        if width not in self._lines:
            self._lines = {width: self.quote.lines(width)}
        return self._lines[width]


def kept(part: SheetPart) -> SheetPart:
    return Kept(part) if isinstance(part, Quote) else part


class Phase(Enum):
    READING = auto()
    ASKING = auto()
    DOING = auto()
    STOPPING = auto()
    ENDED = auto()


class ApprovalBulkScreen(PanelScreen):
    """Everything that is asked for stands here whole, one below the other, and is read to its end first."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "approve", "Approve all", id="bulk.approve"),
        Binding("r", "reject", "Reject all", id="bulk.reject"),
        Binding("escape,q", "close", "Stop or leave", id="bulk.close"),
        *reading_bindings("bulk"),
    ]

    _panel: RequestPanel

    def __init__(
        self, marked: tuple[ApprovalListed, ...], around: Surroundings, after: Callable[[bool], None]
    ) -> None:
        super().__init__(around)
        self._marked = marked
        self._after = after
        self._read: dict[ApprovalId, Approval] = {}
        self._parts: dict[ApprovalId, tuple[SheetPart, ...]] = {}
        self._outcomes: dict[ApprovalId, Content] = {}
        self._decided: set[ApprovalId] = set()
        self._told: Content = system_text("")
        self._since = around.passed()
        self._dialog: ModalScreen[Any] | None = None
        self._menu = (False, False)
        self.phase = Phase.READING
        self._panel = RequestPanel(classes="request")
        self._title = ChangingLine(classes="time")
        self._bar = ChangingLine(classes="offer")

    def body(self) -> ComposeResult:
        yield self._title
        yield self._panel
        yield self._bar

    @property
    def crumb(self) -> str:
        return f"{len(self._marked)} requests"

    @property
    def has_answer(self) -> bool:
        return self.phase is not Phase.READING

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        match action:
            case "approve":
                return self._is_open and self._panel.end_seen
            case "reject":
                return self._is_open
        return True

    @property
    def _is_open(self) -> bool:
        return self.phase is Phase.ASKING and bool(self._left()) and may_decide(self.around.acting_as)

    def _left(self) -> tuple[Approval, ...]:
        """What was read and has no outcome yet, in the order of the list."""
        read = (self._read.get(listed.id) for listed in self._marked)
        return tuple(found for found in read if found is not None and found.id not in self._outcomes)

    # What is seen

    def step(self) -> None:
        if self.phase is Phase.READING and not is_waiting(self, READING):
            self._fetch()

    def on_mount(self) -> None:
        self._show_sheet()

    def tick(self) -> None:
        self._show()

    def set_stale(self, stale: bool) -> None:
        self._panel.set_stale(stale)
        if stale:
            self.workers.cancel_group(self, READING)
            if isinstance(self._dialog, ApproveQuestion):
                self._dialog.answer(False)
        if self.is_mounted:
            self._show()

    def _show(self) -> None:
        if not self.is_attached:
            return
        self._title.show(system_text(f"{len(self._marked)} × ", "bold") + pair_text(self._marked[0]))
        told = self._told + system_text("\n") if self._told.plain else self._told
        self._bar.show(told + self._words())
        menu = (self._is_open, self._panel.end_seen)
        if menu != self._menu:
            self._menu = menu
            self.refresh_bindings()

    def _show_sheet(self) -> None:
        """When all is read and when all is done: many long requests are many lines, and a line of its own tells
        what goes on meanwhile."""
        self._panel.show(self._sheet())
        self._show()

    def _words(self) -> Content:
        done = f"{len(self._outcomes)} of {len(self._marked)} done"
        match self.phase:
            case Phase.READING:
                return system_text(f"Reading {len(self._read)} of {len(self._marked)} …", "$foreground-muted")
            case Phase.DOING:
                return system_text(f"{done}   Esc stops after this one", "bold")
            case Phase.STOPPING:
                return system_text(f"{done}   stopping …", "bold")
            case Phase.ENDED:
                return system_text(f"{self._ended_words(HERE)}   Esc leads back", "bold")
        if not self.around.up:
            return system_text(NO_CONNECTION, "$text-warning")
        if not self._left():
            return system_text("There is nothing left to decide.   Esc leads back", "bold")
        if not self._panel.end_seen:
            return system_text("Scroll to the end to approve: PgDn or End.   r rejects all", "$text-warning")
        left = len(self._left())
        them, those = ("it", "it") if left == 1 else (f"these {left}", "them")
        return system_text(f"a approves {them} (it asks again)   r rejects {those}", "bold")

    def _ended_words(self, where: str) -> str:
        """Refusals may stand above or below the screen: who reads only this line must not miss them."""
        others = len(self._marked) - len(self._decided)
        told = f"{len(self._decided)} of {len(self._marked)} decided"
        return f"{told}, {others} not: {where}" if others else told

    def _sheet(self) -> FactSheet:
        parts: list[SheetPart] = []
        for place, listed in enumerate(self._marked, 1):
            digest = f"digest {listed.digest[:DIGEST_SHOWN]}…"
            parts.append(Heading(system_text(f"{place} of {len(self._marked)}  {listed.id}  {digest}", "bold")))
            if (outcome := self._outcomes.get(listed.id)) is not None:
                parts.append(Remark(outcome))
            parts += self._parts.get(listed.id, ())
        return FactSheet(tuple(parts))

    @on(RequestPanel.EndSeen)
    def _read_to_the_end(self) -> None:
        self._show()

    @work(group=READING)
    async def _fetch(self) -> None:
        try:
            for listed in self._marked:
                if listed.id not in self._read:
                    await self._read_one(listed.id)
        except GONE:
            return
        self.phase = Phase.ASKING
        self._since = self.around.passed()
        self._panel.read_anew()
        self.set_timer(GRACE_SECONDS, self._show)
        self._show_sheet()

    async def _read_one(self, approval_id: ApprovalId) -> None:
        try:
            found = await self.around.link.call(APPROVALS_GET, ApprovalAsked(approval_id=approval_id))
        except GONE:
            raise
        except ConsoleError as error:
            self._outcomes[approval_id] = agent_text(f"✗ {error}", "$text-error", limit=SAID_SHOWN)
            return
        self._read[approval_id] = found
        self._parts[approval_id] = (*facts_of_one(found), *map(kept, request_parts(found)))
        if not waits(found):
            self._outcomes[approval_id] = system_text(f"- {found.state.value} already", "$foreground-muted")
        elif found.begun_by_user_id is not None and found.begun_by_user_id == self._me:
            self._outcomes[approval_id] = system_text("- yours: somebody else decides it", "$text-warning")

    @property
    def _me(self) -> object:
        return None if self.around.link.me is None else self.around.link.me.user_id

    # What is decided

    def on_paste(self, event: events.Paste) -> None:
        event.stop()

    def _may_begin(self) -> bool:
        return self._is_open and not in_grace(self._since, self.around.passed()) and not is_waiting(self, DECIDING)

    def action_approve(self) -> None:
        if self._may_begin() and self._panel.end_seen:
            self._approve(self._left())

    @work(group=DECIDING)
    async def _approve(self, wanted: tuple[Approval, ...]) -> None:
        question = system_text(f"Approve {len(wanted)} × ") + pair_text(wanted[0])
        question += system_text("?   y approves, anything else doesn't.", "bold")
        if await self._ask(ApproveQuestion(question, self.around.passed, GRACE_SECONDS)) is True:
            self._begin([(one.id, Approving(approval_id=one.id, digest_seen=one.digest)) for one in wanted])

    def action_reject(self) -> None:
        if self._may_begin():
            self._reject(self._left())

    @work(group=DECIDING)
    async def _reject(self, wanted: tuple[Approval, ...]) -> None:
        about = system_text(f"Reject {len(wanted)} × ", "bold") + pair_text(wanted[0])
        said = await self._ask(ReasonForm(wanted[0], about, self.around.link))
        if isinstance(said, Rejecting):
            self._begin(
                [
                    (one.id, Rejecting(approval_id=one.id, digest_seen=one.digest, reason=said.reason))
                    for one in wanted
                ]
            )

    async def _ask(self, dialog: ModalScreen[Any]) -> object:
        self._dialog = dialog
        try:
            answer: object = await self.app.push_screen_wait(dialog)
        finally:
            self._dialog = None
        return answer

    def _begin(self, decisions: list[tuple[ApprovalId, Approving | Rejecting]]) -> None:
        """Whoever goes elsewhere meanwhile takes nothing back: it goes on to its end, and is told there."""
        self.phase = Phase.DOING
        self.app.run_worker(self._decide(decisions), group=DECIDING)

    async def _decide(self, decisions: list[tuple[ApprovalId, Approving | Rejecting]]) -> None:
        """One after the other, each with the digest of what was read; a refusal of one is no refusal of all."""
        app = self.app
        for approval_id, asked in decisions:
            self._show()
            try:
                decided = await self._call(asked)
                self._outcomes[approval_id] = system_text(f"✓ {decided.state.value}", "$text-success")
                self._decided.add(approval_id)
            except NotSent:
                self._outcomes[approval_id] = system_text(NOT_SENT, "$text-warning")
                break
            except UNSURE:
                self._outcomes[approval_id] = system_text(NOT_KNOWN, "$text-error")
                break
            except ConsoleError as error:
                self._outcomes[approval_id] = agent_text(f"✗ {error}", "$text-error", limit=SAID_SHOWN)
            if self.phase is Phase.STOPPING:
                break
        self.phase = Phase.ENDED
        if self.is_attached:
            self._show_sheet()
        if self not in app.screen_stack:
            self._after(True)
            words = pair_text(self._marked[0]) + system_text(f": {self._ended_words(ELSEWHERE)}")
            everything = len(self._decided) == len(self._marked)
            app.notify(words.plain, severity="information" if everything else "warning", markup=False)

    async def _call(self, asked: Approving | Rejecting) -> Approval:
        if isinstance(asked, Approving):
            return await self.around.link.call(APPROVALS_APPROVE, asked)
        return await self.around.link.call(APPROVALS_REJECT, asked)

    # Keys

    def action_close(self) -> None:
        """Never in the middle of a decision: what is told to be done is what was done."""
        match self.phase:
            case Phase.DOING:
                self.phase = Phase.STOPPING
                self._show()
            case Phase.READING | Phase.ASKING | Phase.ENDED:
                self._after(self.phase is Phase.ENDED)
                self.dismiss(None)
