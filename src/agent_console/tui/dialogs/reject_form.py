"""Rejecting a request: it takes a reason, and a key that nobody presses by habit."""

from pydantic import BaseModel
from textual.content import Content

from agent_console.domain.approvals import Approval
from agent_console.domain.records import Request
from agent_console.repository.operations.approvals import APPROVALS_REJECT
from agent_console.tui.actions import Action
from agent_console.tui.dialogs.form_fields import form_fields
from agent_console.tui.dialogs.operation_form import DoIt, OperationForm
from agent_console.tui.link import Link

REASON = "reason"


class RejectForm(OperationForm):
    """Rejects what was on the screen when it was opened, by its digest, and nothing else."""

    def __init__(self, approval: Approval, about: Content, link: Link) -> None:
        fields = tuple(field for field in form_fields(APPROVALS_REJECT) if field.name == REASON)
        addressed = {"approval_id": str(approval.id), "digest_seen": approval.digest}
        super().__init__(Action(APPROVALS_REJECT, "Reject"), about, addressed, link, fields)

    def _do_it_here(self) -> DoIt:
        return DoIt("reject", danger=True)


class ReasonForm(RejectForm):
    """Only asks for the reason, read as the operation reads it; whoever asked rejects with it, one by one."""

    async def _answer(self, request: Request) -> BaseModel:
        return request
