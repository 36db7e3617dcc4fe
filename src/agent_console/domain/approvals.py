"""Approvals: delegations that wait for a person, and what the person says."""

from typing import Annotated, ClassVar
from uuid import UUID

from pydantic import Field, JsonValue

from agent_console.domain.agent_changes import Reason
from agent_console.domain.filters import FILTER_LENGTH, Filterable, Known, Qualifier
from agent_console.domain.ids import AgentId, ApprovalId, RouteId, RunId, ThreadId, UserId
from agent_console.domain.records import Instant, PageRequest, Record, Request
from agent_console.domain.states import ApprovalState

ENVELOPE_FORM = 1
BEGINS = 200
"""How many characters of a request a list tells."""

DigestSeen = Annotated[
    str,
    Field(
        pattern="^[0-9a-f]{64}$",
        examples=["0" * 64],
        description="The digest of what you read; it is decided on nothing else.",
    ),
]


class ApprovalBrief(Record):
    """How a request stands, for the agent that made it."""

    id: ApprovalId
    state: ApprovalState
    digest: str
    expires_at: Instant
    decided_at: Instant | None
    decided_by: str | None
    decision_reason: str | None
    run_id: RunId | None


class ApprovalListed(Record):
    columns: ClassVar[tuple[str, ...]] = ("id", "state", "from_agent", "to_agent", "expires_at", "decided_by")

    id: ApprovalId
    state: ApprovalState
    thread_id: ThreadId
    from_agent_id: AgentId
    from_agent: str | None
    to_agent_id: AgentId
    to_agent: str | None
    route_id: RouteId
    route_version: int = Field(description="The version of the route that asked for a person.")
    parent_run_id: RunId | None
    trace_id: UUID
    delegation_path: tuple[AgentId, ...]
    max_hops: int | None = Field(None, description="How many agents may pass a request on, as it is set now.")
    begins: str = Field("", description="How the request begins; all of it is in the envelope.")
    digest: str = Field(description="SHA-256 of the envelope; a decision names it.")
    expires_at: Instant
    decided_by_user_id: UserId | None
    decided_by: str | None
    decided_at: Instant | None
    decision_reason: str | None
    run_id: RunId | None = Field(description="The run that the approval made.")
    created_at: Instant


class Approval(ApprovalListed):
    """A request, whole. The person who began the whole matter may not decide it."""

    envelope: dict[str, JsonValue] = Field(description="Exactly what is asked, as the digest covers it.")
    begun_by_user_id: UserId | None = Field(description="The person whose wish is behind it, if there is one.")
    begun_by: str | None
    path: tuple[str, ...] = Field((), description="The names of those on the delegation path, in their order.")
    thread: str | None = Field(None, description="The title of the thread.")


class ApprovalAsked(Request):
    approval_id: ApprovalId


APPROVAL_FILTERS = Filterable(
    (
        Qualifier("status", "its state", listed=tuple(ApprovalState), also="state"),
        Qualifier("from", "the agent that asks, by name or id", known=Known.AGENTS),
        Qualifier("to", "the agent that is asked, by name or id", known=Known.AGENTS),
        Qualifier("age", "since it was asked for, such as >1h or <2d", is_age=True),
        Qualifier("thread", "the thread it belongs to, by its thr_ id", id_of=ThreadId),
    ),
    words="the names of the two agents",
)


class _Filter(PageRequest):
    """A page may hold fewer than its limit and still have a next one."""

    filters: ClassVar[Filterable] = APPROVAL_FILTERS

    thread_id: ThreadId | None = Field(None, description="Only those of this thread.")
    from_agent_id: AgentId | None = Field(None, description="Only those this agent asked for.")
    to_agent_id: AgentId | None = Field(None, description="Only those that ask this agent.")
    filter: Annotated[str, APPROVAL_FILTERS.checked] | None = Field(
        None, max_length=FILTER_LENGTH, description=APPROVAL_FILTERS.help, examples=["from:atlas age:>1h"]
    )


class ApprovalQuery(_Filter):
    """Those that wait, the next to expire first; or those of one other state, the newest decision first."""

    state: ApprovalState = Field(ApprovalState.PENDING, description="Only those in this state.")


class ApprovalHistoryQuery(_Filter):
    """What was decided, by whomever or by time: the newest first."""


class Approving(Request):
    approval_id: ApprovalId
    digest_seen: DigestSeen
    reason: Reason | None = Field(None, description="Why; the agent that asked reads it.")


class Rejecting(Request):
    approval_id: ApprovalId
    digest_seen: DigestSeen
    reason: Reason = Field(description="Why; the agent that asked reads it.")


class Looking(Request):
    """Somebody has the request open; said again every few seconds for as long as it is."""

    approval_id: ApprovalId
    session: str = Field(
        pattern="^[0-9a-z]{1,64}$",
        examples=["c0ffee"],
        description="Tells the consoles of one person apart; any word that stays the same while it is open.",
    )


class Looker(Record):
    """Somebody who has the request open."""

    columns: ClassVar[tuple[str, ...]] = ("name", "since", "seen_at")

    user_id: UserId
    name: str
    since: Instant
    seen_at: Instant
