"""A2A routes: which agent may ask which, in which version, and who said so."""

from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field

from agent_console.domain.agent_changes import Reason, without_secrets
from agent_console.domain.ids import AgentId, RouteId, UserId
from agent_console.domain.kinds import RoutePolicy
from agent_console.domain.records import (
    LARGEST_COUNT,
    PAGE_LIMIT_MAX,
    Instant,
    NotBlank,
    PageRequest,
    Record,
    Request,
    Storable,
)
from agent_console.domain.states import Presence

NOTES_LONGEST = 1000

# An agt_ id is always an id: an agent whose name looks like one can only be meant by its own.
AgentWord = Annotated[str, Field(min_length=1, max_length=255), NotBlank, Storable]
Notes = Annotated[str, Field(max_length=NOTES_LONGEST), Storable, AfterValidator(without_secrets)]


class Route(Record):
    columns: ClassVar[tuple[str, ...]] = (
        "id", "from_agent", "to_agent", "policy", "version", "updated_by", "updated_at", "notes",
    )  # fmt: skip

    id: RouteId
    from_agent_id: AgentId
    from_agent: str = Field(description="The name of the agent that asks.")
    to_agent_id: AgentId
    to_agent: str = Field(description="The name of the agent that is asked.")
    policy: RoutePolicy
    notes: str | None
    version: int = Field(description="Name it as base_version when you edit the route.")
    created_by_user_id: UserId | None
    created_by: str | None
    created_at: Instant
    updated_by_user_id: UserId | None
    updated_by: str | None
    updated_at: Instant


class RouteAsked(Request):
    route_id: RouteId


class RouteQuery(PageRequest):
    from_agent: AgentWord | None = Field(None, description="Only routes of this asking agent, by name or id.")
    to_agent: AgentWord | None = Field(None, description="Only routes to this asked agent, by name or id.")
    policy: RoutePolicy | None = Field(None, description="Only routes with this policy.")


class RouteEdit(Request):
    """The route of a pair as it shall be; what is left out of it stays as it is."""

    from_agent: AgentWord = Field(description="The agent that asks, by name or id.")
    to_agent: AgentWord = Field(description="The agent that is asked, by name or id.")
    policy: RoutePolicy = Field(description="What happens when it asks.")
    notes: Notes | None = Field(None, description="For whoever reads the policy; empty removes them.")
    base_version: int | None = Field(
        None,
        ge=0,
        le=LARGEST_COUNT,
        description="The version you edit; 0 or left out for a pair that has no route.",
    )
    reason: Reason | None = Field(None, description="Why; the history keeps it.")


class RouteRemoval(Request):
    route_id: RouteId
    base_version: int = Field(ge=1, le=LARGEST_COUNT, description="The version that you saw.")
    reason: Reason | None = Field(None, description="Why; the history keeps it.")


class RouteHistoryQuery(PageRequest):
    """Every version of a pair, newest first; also of agents that were deleted, by their ids."""

    from_agent: AgentWord = Field(description="The agent that asks, by name or id.")
    to_agent: AgentWord = Field(description="The agent that is asked, by name or id.")


class RouteVersion(Record):
    """One version. A removed route has one too, and one that is made again goes on counting."""

    columns: ClassVar[tuple[str, ...]] = (
        "version", "policy", "removed", "changed_by", "changed_at", "reason", "notes",
    )  # fmt: skip

    version: int
    route_id: RouteId
    policy: RoutePolicy = Field(description="Of a removed one, the last it had.")
    notes: str | None
    removed: bool = Field(description="True when the pair had no route from here on.")
    changed_by_user_id: UserId | None
    changed_by: str | None
    changed_at: Instant
    reason: str | None


class MatrixQuery(Request):
    """A page of agents by name, or the agents that are named; and the routes among them."""

    limit: int = Field(50, ge=1, le=PAGE_LIMIT_MAX, description="How many agents at most.")
    after: str | None = Field(None, max_length=500, description="Where the page before ended.")
    agents: tuple[AgentId, ...] = Field(
        (), max_length=PAGE_LIMIT_MAX, description="Just these agents; repeat for several."
    )


class MatrixAgent(Record):
    id: AgentId
    name: str
    status: Presence


class MatrixCell(Record):
    route_id: RouteId
    from_agent_id: AgentId
    to_agent_id: AgentId
    policy: RoutePolicy
    version: int


class Matrix(Record):
    """Who is there, and the pairs among them that have a route; every other pair is blocked."""

    agents: tuple[MatrixAgent, ...]
    cells: tuple[MatrixCell, ...]
    next: str | None = Field(None, description="Ask again with after=this for more agents; null at the end.")
