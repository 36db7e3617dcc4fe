"""One request and its decision: the screen on which an operator says yes or no."""

from typing import Any, ClassVar

from textual import events, work
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen

from agent_console.domain.approvals import Approval, ApprovalListed, Approving
from agent_console.domain.errors import ConsoleError
from agent_console.domain.kinds import RoutePolicy
from agent_console.domain.permissions import GRANTS, Permission
from agent_console.domain.records import Record
from agent_console.repository.operations.approvals import APPROVALS_APPROVE
from agent_console.tui.agent_text import agent_text, system_text
from agent_console.tui.dialogs.approve_question import ApproveQuestion
from agent_console.tui.dialogs.reject_form import RejectForm
from agent_console.tui.link import NotSent, is_unsure
from agent_console.tui.panes.approvals.looks import pair_text, waits
from agent_console.tui.panes.approvals.offer import APPROVE, GRACE_SECONDS, ONE_MOMENT, REJECT
from agent_console.tui.panes.approvals.reading import ApprovalReading
from agent_console.tui.panes.list_kind import ListKind
from agent_console.tui.panes.pane import is_waiting
from agent_console.tui.panes.routes.editor import route_editor
from agent_console.tui.panes.stacked import StackedScreen
from agent_console.tui.panes.surroundings import Surroundings
from agent_console.tui.wanted import ScreenWanted

DECIDING = "deciding"
SAID_SHOWN = 300
NOT_KNOWN = "Whether your decision arrived is not known; it is looked up as soon as the connection is back."
NOT_KNOWN_ELSEWHERE = "Whether your decision arrived is not known: look at it again."
NOT_SENT = "Your decision was not sent: there is no connection right now."
NOT_ARRIVED = "Your decision did not arrive: as of now it still waits."
CHANGED = "It has changed under your eyes. Read it again."
PASTED = "Pasted text decides nothing."
NOT_APPROVED = "You did not approve it."


class ApprovalScreen(ApprovalReading):
    """Takes a decision about exactly what is on the screen, and about nothing that is no longer so."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "approve", "Approve once", id="approval.approve"),
        Binding("r", "reject", "Reject", id="approval.reject"),
        Binding("t", "jump('threads')", "Thread", id="approval.thread"),
        Binding("w", "lookers", "Who looks", id="approval.lookers"),
        Binding("p", "draft", "Draft rule", id="approval.draft"),
    ]

    def __init__(self, kind: ListKind, record: ApprovalListed, around: Surroundings) -> None:
        super().__init__(kind, record, around)
        self._unsure = False
        self._was_refused = False
        self._dialog: ModalScreen[Any] | None = None

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """What can't be decided, by this person or at all, is not on the menu."""
        match action:
            case "approve" | "reject":
                return action in self.offer.keys
            case "draft":
                role = self.around.acting_as
                return self._approval is not None and role is not None and Permission.ADMINISTER in GRANTS[role]
        return super().check_action(action, parameters)

    # What changes under the operator

    def take(self, found: Approval) -> None:
        """No key that was on its way is about what is new on the screen, and no question either."""
        before = self._approval
        is_new = before is None or _reads_differently(before, found)
        if is_new:
            self._since = self.around.passed()
            self.set_timer(GRACE_SECONDS, self.show)
        if is_new and before is not None:
            self._drop_dialog()
            if waits(found) and not self._was_refused:
                self._told = system_text(CHANGED, "$text-warning")
        self._was_refused = False
        if self._unsure:
            self._unsure = False
            self._told = system_text(NOT_ARRIVED, "$text-warning") if waits(found) else system_text("")
        super().take(found)

    def set_stale(self, stale: bool) -> None:
        super().set_stale(stale)
        if stale and isinstance(self._dialog, ApproveQuestion):
            self._dialog.answer(False)

    def _drop_dialog(self) -> None:
        if self._dialog is not None and self._dialog.is_current:
            self._dialog.dismiss(None)

    async def _ask(self, dialog: ModalScreen[Any]) -> object:
        self._dialog = dialog
        try:
            answer: object = await self.app.push_screen_wait(dialog)
        finally:
            self._dialog = None
        return answer

    # The decision

    def on_paste(self, event: events.Paste) -> None:
        event.stop()
        self.say(system_text(PASTED, "$text-warning"))

    def _decidable(self, key: str) -> Approval | None:
        """What is on the screen, if this key may decide it now; else the reason is said."""
        offer = self.offer
        if key in offer.ready and not is_waiting(self, DECIDING):
            return self._approval
        self.say(system_text(ONE_MOMENT, "$text-warning") if key in offer.keys else system_text(""))
        return None

    def action_approve(self) -> None:
        if (approval := self._decidable(APPROVE)) is not None:
            self._approve(approval)

    @work(group=DECIDING)
    async def _approve(self, approval: Approval) -> None:
        """The digest is that of the request on the screen when the key was pressed."""
        self.say(system_text(""))
        question = system_text("Approve ") + pair_text(approval)
        question += system_text("?   y approves, anything else doesn't.", "bold")
        sure = await self._ask(ApproveQuestion(question, self.around.passed, GRACE_SECONDS))
        if sure is not True:
            if not self._told.plain:
                self.say(system_text(NOT_APPROVED, "$foreground-muted"))
            return
        self._asking = True
        self.show()
        # Whoever leaves the request meanwhile does not take the decision back.
        self.app.run_worker(self._decide(approval), group=DECIDING)

    async def _decide(self, approval: Approval) -> None:
        app, about = self.app, pair_text(approval)
        asked = Approving(approval_id=approval.id, digest_seen=approval.digest)
        refusal: ConsoleError | None = None
        try:
            decided = await self.around.link.call(APPROVALS_APPROVE, asked)
        except ConsoleError as error:
            refusal = error
            if self.is_attached:
                self._refused(error)
        else:
            if self.is_attached:
                self._decided(decided)
        if self not in app.screen_stack:
            words = "you approved it." if refusal is None else refusal_words(refusal, NOT_KNOWN_ELSEWHERE)
            said = about + agent_text(f": {words}", limit=SAID_SHOWN)
            app.notify(said.plain, severity="information" if refusal is None else "warning", markup=False)

    def action_reject(self) -> None:
        if (approval := self._decidable(REJECT)) is not None:
            self._reject(approval)

    @work(group=DECIDING)
    async def _reject(self, approval: Approval) -> None:
        self.say(system_text(""))
        about = system_text("Reject ", "bold") + pair_text(approval)
        answer = await self._ask(RejectForm(approval, about, self.around.link))
        if isinstance(answer, Approval):
            self._decided(answer)
        else:
            self.look_again()

    def _decided(self, approval: Approval) -> None:
        self._asking = False
        self._told = system_text("")
        self.take(approval)

    def _refused(self, error: ConsoleError) -> None:
        """What became of it is looked up, never guessed."""
        self._asking = False
        self._was_refused = True
        self._unsure = is_unsure(error)
        self._told = agent_text(refusal_words(error, NOT_KNOWN), "$text-error", limit=SAID_SHOWN)
        self.look_again()

    def action_draft(self) -> None:
        """The narrowest rule is this pair and nothing more; it is written in its own screen, if at all."""
        listed = self._listed
        editor = route_editor(self.around, listed.from_agent_id, listed.to_agent_id, RoutePolicy.ALLOWED)
        self.post_message(ScreenWanted(editor))


def refusal_words(error: ConsoleError, not_known: str) -> str:
    if is_unsure(error):
        return not_known
    return NOT_SENT if isinstance(error, NotSent) else str(error)


def _reads_differently(before: Approval, found: Approval) -> bool:
    return (before.state, before.digest, before.envelope) != (found.state, found.digest, found.envelope)


def approval_screen(kind: ListKind, record: Record, around: Surroundings) -> StackedScreen:
    if not isinstance(record, ApprovalListed):
        raise TypeError(f"{type(record).__name__} is no approval")
    return ApprovalScreen(kind, record, around)
