"""Collections: what is looked through again and again, by which agent, and how often."""

from typing import Annotated, ClassVar

from pydantic import Field

from agent_console.domain.connectors import StorageName
from agent_console.domain.ids import AgentId, CollectionId, ConnectorId, UserId
from agent_console.domain.kinds import StorageKind
from agent_console.domain.records import Instant, PageRequest, Record, Request

INTERVAL_HOURS_MAX = 24 * 366

Location = Annotated[str, Field(min_length=1, max_length=2000)]
Tool = Annotated[str, Field(pattern=r"^\S{1,100}$")]
IntervalHours = Annotated[int, Field(ge=1, le=INTERVAL_HOURS_MAX)]


class Collection(Record):
    columns: ClassVar[tuple[str, ...]] = (
        *("id", "name", "type", "tool", "bound_agent", "auto_refresh"),
        *("refresh_interval_hours", "last_refresh_at", "next_refresh_at"),
    )

    id: CollectionId
    name: str
    type: StorageKind
    location: str | None
    tool: str | None
    connector_id: ConnectorId | None
    connector: str | None
    bound_agent_id: AgentId | None
    bound_agent: str | None
    auto_refresh: bool
    refresh_interval_hours: int | None
    last_refresh_at: Instant | None = Field(description="When a refresh was last completed.")
    next_refresh_at: Instant | None = Field(description="When its scheduled job is due.")
    created_by_user_id: UserId
    created_by: str
    updated_by_user_id: UserId | None
    updated_by: str | None
    created_at: Instant
    updated_at: Instant


class CollectionQuery(PageRequest):
    """The collections of the team, oldest first."""

    type: StorageKind | None = Field(None, description="Only this kind of storage.")
    bound_agent_id: AgentId | None = Field(None, description="Only those bound to this agent.")
    connector_id: ConnectorId | None = Field(None, description="Only those on this connector.")


class CollectionAsked(Request):
    collection_id: CollectionId


class NewCollection(Request):
    """A collection to make. With auto_refresh and an interval its first job is scheduled at once."""

    name: StorageName = Field(description="What people call it.")
    type: StorageKind = Field(description="The kind of storage; a local one needs an agent.")
    location: Location | None = Field(None, description="A path, a bucket or a share.")
    tool: Tool | None = Field(None, description="The tool that looks through it.")
    connector_id: ConnectorId | None = Field(None, description="The connector it lies on.")
    bound_agent_id: AgentId | None = Field(None, description="The one agent that can reach it.")
    auto_refresh: bool = Field(True, description="Whether to refresh on a timetable.")
    refresh_interval_hours: IntervalHours | None = Field(None, description="Hours between two refreshes.")


class CollectionUpdate(Request):
    """What is left out stays as it is; null takes a value away."""

    collection_id: CollectionId
    name: StorageName | None = Field(None, description="A new name.")
    location: Location | None = Field(None, description="A path, a bucket or a share.")
    tool: Tool | None = Field(None, description="The tool that looks through it.")
    connector_id: ConnectorId | None = Field(None, description="The connector it lies on.")
    bound_agent_id: AgentId | None = Field(None, description="The one agent that can reach it.")
    auto_refresh: bool | None = Field(None, description="Whether to refresh on a timetable.")
    refresh_interval_hours: IntervalHours | None = Field(None, description="Hours between two refreshes.")
