"""Approvals: delegations that wait for a person."""

from agent_console.domain.approvals import (
    Approval,
    ApprovalAsked,
    ApprovalHistoryQuery,
    ApprovalListed,
    ApprovalQuery,
    Approving,
    Looker,
    Looking,
    Rejecting,
)
from agent_console.domain.audit import audit_action
from agent_console.domain.permissions import Permission
from agent_console.domain.records import Page
from agent_console.domain.states import ApprovalState
from agent_console.repository.operations.declared import AnyOperation, Operation, Verb

_ABOUT = ("from_agent_id", "to_agent_id", "digest", "policy_version")

APPROVAL_APPROVED = audit_action("approval.approve", *_ABOUT)
APPROVAL_REJECTED = audit_action("approval.reject", *_ABOUT)
APPROVAL_EXPIRED = audit_action("approval.expire", *_ABOUT)
APPROVAL_WITHDRAWN = audit_action("approval.withdraw", *_ABOUT)
APPROVAL_SUPERSEDED = audit_action("approval.supersede", *_ABOUT)
APPROVAL_REFUSED = audit_action("approval.refused", *_ABOUT, "rule")


def _waits(approval: ApprovalListed) -> bool:
    return approval.state is ApprovalState.PENDING


APPROVALS_LIST = Operation(
    name="approvals.list",
    summary="What waits for a person, the next to expire first.",
    verb=Verb.GET,
    path="/v1/approvals",
    request=ApprovalQuery,
    answer=Page[ApprovalListed],
    permission=Permission.READ_THREADS,
    tells=True,
)
APPROVALS_HISTORY = Operation(
    name="approvals.history",
    summary="What was decided, newest first.",
    verb=Verb.GET,
    path="/v1/approvals/history",
    request=ApprovalHistoryQuery,
    answer=Page[ApprovalListed],
    permission=Permission.READ_THREADS,
    tells=True,
)
APPROVALS_GET = Operation(
    name="approvals.get",
    summary="One request, with exactly what is asked.",
    verb=Verb.GET,
    path="/v1/approvals/{approval_id}",
    request=ApprovalAsked,
    answer=Approval,
    permission=Permission.READ_THREADS,
    tells=True,
)
APPROVALS_APPROVE = Operation(
    name="approvals.approve",
    summary="Let it happen: the other agent is asked.",
    verb=Verb.POST,
    path="/v1/approvals/{approval_id}/approve",
    request=Approving,
    answer=Approval,
    permission=Permission.DECIDE_APPROVALS,
    audit=APPROVAL_APPROVED,
    danger=True,
    fits=_waits,
)
APPROVALS_REJECT = Operation(
    name="approvals.reject",
    summary="Refuse it, and say why.",
    verb=Verb.POST,
    path="/v1/approvals/{approval_id}/reject",
    request=Rejecting,
    answer=Approval,
    permission=Permission.DECIDE_APPROVALS,
    audit=APPROVAL_REJECTED,
    fits=_waits,
)
APPROVALS_LOOK = Operation(
    name="approvals.look",
    summary="Say that you are reading it, and hear who else is.",
    verb=Verb.POST,
    path="/v1/approvals/{approval_id}/look",
    request=Looking,
    answer=Page[Looker],
    permission=Permission.DECIDE_APPROVALS,
    writes=True,
    per_minute=120,
    fits=_waits,
)
APPROVALS_LOOKERS = Operation(
    name="approvals.lookers",
    summary="Who is reading it just now.",
    verb=Verb.GET,
    path="/v1/approvals/{approval_id}/lookers",
    request=ApprovalAsked,
    answer=Page[Looker],
    permission=Permission.SEE_FLEET,
    tells=True,
)

NOUNS: dict[str, str] = {"approvals": "What agents want to ask of others, and a person has to decide."}

APPROVALS: tuple[AnyOperation, ...] = (
    APPROVALS_LIST,
    APPROVALS_HISTORY,
    APPROVALS_GET,
    APPROVALS_APPROVE,
    APPROVALS_REJECT,
    APPROVALS_LOOK,
    APPROVALS_LOOKERS,
)
