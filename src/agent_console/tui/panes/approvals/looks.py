"""How a request that waits for a person looks: its state, its time, who asks whom."""

from datetime import datetime

from textual.content import Content

from agent_console.domain.approvals import Approval, ApprovalListed, Looker
from agent_console.domain.ids import UserId
from agent_console.domain.records import shown_time
from agent_console.domain.spans import ago, span
from agent_console.domain.states import ApprovalState
from agent_console.tui.agent_text import agent_text, system_text

NAME_SHOWN = 60
REASON_SHOWN = 300
SOON_SECONDS = 300
LAST_SECONDS = 60
LOOKERS_NAMED = 3

STATE: dict[ApprovalState, tuple[str, str]] = {
    ApprovalState.PENDING: ("◔", "bold"),
    ApprovalState.APPROVED: ("✓", "$text-success"),
    ApprovalState.REJECTED: ("✗", "$text-error"),
    ApprovalState.EXPIRED: ("◌", "$text-warning"),
    ApprovalState.WITHDRAWN: ("-", "$foreground-muted"),
    ApprovalState.SUPERSEDED: ("-", "$foreground-muted"),
}


def waits(approval: ApprovalListed) -> bool:
    return approval.state is ApprovalState.PENDING


def seconds_left(approval: ApprovalListed, now: datetime) -> float:
    return (approval.expires_at - now).total_seconds()


def state_text(approval: ApprovalListed) -> Content:
    glyph, style = STATE[approval.state]
    return system_text(f"{glyph} {approval.state.value}", style)


def urgency(left: float) -> str:
    """The colour of a countdown; near its end it changes twice."""
    if left <= LAST_SECONDS:
        return "$text-error bold"
    return "$text-warning bold" if left <= SOON_SECONDS else ""


def exactly(seconds: float) -> str:
    """To the second, for whoever watches it run out."""
    left = max(0, int(seconds))
    if left >= 3600:
        return f"{left // 3600}h {left % 3600 // 60:02}m {left % 60:02}s"
    return f"{left // 60}m {left % 60:02}s" if left >= 60 else f"{left}s"


def countdown(approval: ApprovalListed, now: datetime) -> Content:
    """For a list: to the second only when it matters."""
    left = seconds_left(approval, now)
    if left <= 0:
        return system_text("◌ time is up", "$text-error bold")
    shown = exactly(left) if left <= SOON_SECONDS else span(left)
    return system_text(f"◔ {shown} left", urgency(left))


def pair_text(approval: ApprovalListed, style: str = "bold") -> Content:
    """By name; who has none any more is named by id."""
    asking = agent_text(approval.from_agent or str(approval.from_agent_id), style, limit=NAME_SHOWN)
    asked = agent_text(approval.to_agent or str(approval.to_agent_id), style, limit=NAME_SHOWN)
    return asking + system_text(" → ", "$foreground-muted") + asked


def hop_text(approval: ApprovalListed, between: str) -> Content:
    """The how-manieth to pass it on, of how many."""
    most = "?" if approval.max_hops is None else approval.max_hops
    return system_text(f"{len(approval.delegation_path)}{between}{most}")


def decided_text(approval: ApprovalListed, now: datetime, me: UserId | None) -> Content:
    """Who decided, when and why; what ended by itself says so."""
    at = "" if approval.decided_at is None else f" {ago(approval.decided_at, now)} ago ({clock_time(approval)})"
    glyph, style = STATE[approval.state]
    reason = approval.decision_reason
    why = agent_text(f": {reason}", limit=REASON_SHOWN) if reason else system_text(".")
    if approval.decided_by_user_id is None:
        return system_text(f"{glyph} It is {approval.state.value} since{at}", style) + why
    mine = approval.decided_by_user_id == me
    who = system_text("You") if mine else agent_text(approval.decided_by or "Somebody", limit=NAME_SHOWN)
    return system_text(f"{glyph} ", style) + who + system_text(f" {approval.state.value} it{at}", style) + why


def clock_time(approval: ApprovalListed) -> str:
    return "" if approval.decided_at is None else f"{shown_time(approval.decided_at)[11:19]}Z"


def time_line(approval: Approval, now: datetime) -> Content:
    """Who asks whom and how long there is to decide it: stays on the screen while the rest scrolls."""
    line = pair_text(approval)
    if not waits(approval):
        return line + state_text(approval).pad_left(3)
    left = seconds_left(approval, now)
    if left <= 0:
        return line + system_text("   ◌ its time is up", "$text-error bold")
    waited = system_text(f"   waiting {ago(approval.created_at, now)}", "$foreground-muted")
    return line + system_text(f"   ◔ expires in {exactly(left)}", urgency(left)) + waited


def lookers_text(lookers: tuple[Looker, ...], now: datetime, me: UserId | None) -> Content:
    """Who else has it open; empty when nobody has."""
    if not lookers:
        return system_text("")
    named = [_looker(looker, now, me) for looker in lookers[:LOOKERS_NAMED]]
    more = f" and {len(lookers) - LOOKERS_NAMED} more" if len(lookers) > LOOKERS_NAMED else ""
    listed = system_text(", ").join(named)
    return system_text("also looking: ", "$text-warning") + listed + system_text(more)


def _looker(looker: Looker, now: datetime, me: UserId | None) -> Content:
    who = system_text("you elsewhere") if looker.user_id == me else agent_text(looker.name, limit=NAME_SHOWN)
    return who + system_text(f" since {ago(looker.since, now)}", "$foreground-muted")
