"""Agents as they are shown, and the pool they make."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, JsonValue

from agent_console.domain.filters import FILTER_LENGTH, Filterable, Qualifier
from agent_console.domain.ids import AgentId, CollectionId, ConnectorId, UserId
from agent_console.domain.list_order import ListOrder
from agent_console.domain.pausing import Pause
from agent_console.domain.records import Instant, PageRequest, Record, Request
from agent_console.domain.states import Lifecycle, Presence

OFFLINE_AFTER_SECONDS = 90
HELD_JOBS_CAP = 10_000


class Agent(Record):
    """One agent. `status` is its presence, with `revoked` on top; lifecycle only exists for hosted ones."""

    id: AgentId
    name: str
    status: Presence
    error_message: str | None
    last_heartbeat_at: Instant | None
    capabilities: tuple[str, ...]
    connectors: tuple[ConnectorId, ...]
    current_jobs: int = Field(description="Jobs it holds now, assigned or running.")
    max_concurrent_jobs: int
    drained_at: Instant | None
    drain_reason: str | None
    hostname: str | None
    os_info: str | None
    version: str | None
    binary_checksum: str | None
    api_key_prefix: str
    worker_id: str
    connector_ref: str
    profile: dict[str, JsonValue]
    hosted: bool
    lifecycle: Lifecycle | None
    cpu_millicores: int
    memory_mb: int
    runtime_version: str
    metrics: dict[str, JsonValue]
    owner_user_id: UserId
    owner: str
    system_user_id: UserId
    created_by_user_id: UserId
    created_by: str
    revoked_at: Instant | None
    revocation_reason: str | None
    created_at: Instant
    updated_at: Instant
    lifecycle_changed_at: Instant | None = None
    open_sessions: int = 0
    uptime_seconds: int | None = Field(None, description="Since it came online; null while it is not.")
    bound_collections: tuple[CollectionId, ...] = ()


AGENT_FILTERS = Filterable(
    (
        Qualifier("status", "its presence", listed=tuple(Presence)),
        Qualifier("capability", "what it can do; tool:x is put in quotes and also finds tool:x:1.2.3"),
        Qualifier("host", "the machine it runs on"),
        Qualifier("version", "its version"),
        Qualifier("owner", "whose it is, by e-mail or usr_ id"),
        Qualifier("age", "since it was registered, such as >1h or <2d", is_age=True),
    ),
    words="its name",
)


class AgentQuery(PageRequest):
    """The agents of the team, oldest first. With a filter a page may hold few, even none, and still go on."""

    filters: ClassVar[Filterable] = AGENT_FILTERS

    status: Presence | None = Field(None, description="Only agents in this state.")
    owner: UserId | None = Field(None, description="Only agents of this user.")
    capability: Annotated[str, Field(min_length=1, max_length=200)] | None = Field(
        None, description="Only agents with this capability; tool:x also finds tool:x:1.2.3."
    )
    filter: Annotated[str, AGENT_FILTERS.checked] | None = Field(
        None, max_length=FILTER_LENGTH, description=AGENT_FILTERS.help, examples=["status:online host:h1"]
    )
    order: ListOrder = Field(ListOrder.OLDEST, description="From which end the list is read.")


class AgentAsked(Request):
    agent_id: AgentId


class PoolStatus(Record):
    """What the badge in the header tells. Held jobs are counted up to a cap; beyond it `capped` is true."""

    online_count: int
    idle_count: int
    running_jobs_count: int
    offline_count: int
    error_count: int
    at: Instant
    capped: bool = False
    pause: Pause | None = Field(None, description="Null unless the queue is paused.")

    @property
    def state(self) -> Literal["offline", "idle", "running"]:
        if self.online_count == 0:
            return "offline"
        return "running" if self.running_jobs_count else "idle"
