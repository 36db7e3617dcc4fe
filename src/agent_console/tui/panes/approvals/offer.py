"""What can be decided about a request here and now, and if not, why not. Pure: the screen asks, and says it."""

from dataclasses import dataclass
from datetime import datetime

from textual.content import Content

from agent_console.domain.approvals import Approval
from agent_console.domain.ids import UserId
from agent_console.domain.permissions import GRANTS, Permission, Role
from agent_console.tui.agent_text import system_text
from agent_console.tui.panes.approvals.looks import decided_text, seconds_left, waits

GRACE_SECONDS = 0.5
"""Whoever typed on when the request came up, or when it changed, was not answering it."""

ONE_MOMENT = "One moment: for half a second after something appears, keys decide nothing."
TO_THE_END = "Scroll to the end to approve: PgDn or End.   r rejects with a reason."
READY = "a approves once (it asks again)   r rejects with a reason"
OWN = "You began this yourself; somebody else has to decide it."
TIME_IS_UP = "Its time is up; whether it is over is being looked up."
NO_CONNECTION = "There is no connection: nothing can be decided until it is back."
READ_ONLY = "This console is read-only: nothing can be decided here."


@dataclass(frozen=True)
class Standing:
    """Everything an offer rests on. `since` is when this was first shown like this, as `passed` counts."""

    approval: Approval | None
    now: datetime
    passed: float
    since: float
    role: Role | None
    me: UserId | None
    up: bool
    read_only: bool
    read_to_end: bool
    asking: bool = False


@dataclass(frozen=True)
class Offer:
    """`keys` are the decisions that are on the menu; a key on it may still have to wait."""

    words: Content
    keys: frozenset[str] = frozenset()
    ready: frozenset[str] = frozenset()


APPROVE, REJECT = "approve", "reject"
BOTH = frozenset({APPROVE, REJECT})


def may_decide(role: Role | None) -> bool:
    return role is not None and Permission.DECIDE_APPROVALS in GRANTS[role]


def in_grace(since: float, now: float) -> bool:
    """Both in seconds that passed: whatever a clock is set to, a grace is neither skipped nor endless."""
    return now - since < GRACE_SECONDS


def offer_of(standing: Standing) -> Offer:
    approval = standing.approval
    if approval is None:
        return Offer(system_text("Loading …", "$foreground-muted"))
    if not waits(approval):
        return Offer(decided_text(approval, standing.now, standing.me))
    if (hindrance := _hindrance(standing, approval)) is not None:
        return Offer(system_text(hindrance, "$text-warning"))
    keys = BOTH if standing.read_to_end else BOTH - {APPROVE}
    if in_grace(standing.since, standing.passed):
        return Offer(system_text(ONE_MOMENT, "$foreground-muted"), keys)
    if not standing.read_to_end:
        return Offer(system_text(TO_THE_END, "$text-warning"), keys, keys)
    return Offer(system_text(READY, "bold"), keys, keys)


def _hindrance(standing: Standing, approval: Approval) -> str | None:
    if standing.asking:
        return "Asking …"
    if not standing.up:
        return NO_CONNECTION
    if seconds_left(approval, standing.now) <= 0:
        return TIME_IS_UP
    if standing.read_only:
        return READ_ONLY
    if not may_decide(standing.role):
        role = "nobody" if standing.role is None else standing.role.value
        return f"The role {role} reads this; deciding it takes an operator or an administrator."
    if approval.begun_by_user_id is not None and approval.begun_by_user_id == standing.me:
        return OWN
    return None
