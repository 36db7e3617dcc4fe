"""What can be changed about an agent, and how many there are."""

from typing import Annotated

from pydantic import AfterValidator, Field

from agent_console.domain.capabilities import normal_capabilities
from agent_console.domain.ids import AgentId, UserId
from agent_console.domain.records import JsonObject, NotBlank, Record, Request
from agent_console.domain.redact import redact

AGENT_COUNT_CAP = 10_000


def without_secrets(text: str) -> str:
    """A place where everyone reads is no place for a secret."""
    if redact(text) != text:
        raise ValueError("looks as if it held a secret; name where the secret is kept instead")
    return text


AgentName = Annotated[str, Field(min_length=1, max_length=255), NotBlank]
Reason = Annotated[str, Field(min_length=1, max_length=500), NotBlank, AfterValidator(redact)]
ConnectorRef = Annotated[str, Field(min_length=1, max_length=500), NotBlank, AfterValidator(without_secrets)]
Concurrency = Annotated[int, Field(ge=1, le=1000)]
Capabilities = Annotated[tuple[str, ...], Field(max_length=200), AfterValidator(normal_capabilities)]


class AgentCountQuery(Request):
    owner: UserId | None = Field(None, description="Only agents of this user.")


class AgentCount(Record):
    count: int = Field(description="How many, at most the cap.")
    capped: bool = Field(description="True when there are more than the count says.")


class AgentRenaming(Request):
    agent_id: AgentId
    name: AgentName = Field(description="The new name, unique in the team.")


class AgentDraining(Request):
    agent_id: AgentId
    reason: Reason = Field(description="Why; everyone who looks at the agent reads it.")
    release: bool = Field(False, description="Give its jobs back now; otherwise it finishes them.")


class AgentLimit(Request):
    agent_id: AgentId
    max_concurrent_jobs: Concurrency = Field(description="How many jobs it may hold at once.")


class AgentConfiguration(Request):
    """What is left out stays as it is."""

    agent_id: AgentId
    connector_ref: ConnectorRef | None = Field(None, description="Routing hint for the connector layer.")
    profile: JsonObject | None = Field(None, description="Free description, a JSON object.")


class AgentRevocation(Request):
    agent_id: AgentId
    reason: Reason = Field(description="Why its access ends.")


class AgentImport(Request):
    """An agent as another registry knows it; what the id names is put in its place, whole."""

    agent_id: AgentId
    name: AgentName = Field(description="Unique in the team.")
    owner: UserId | None = Field(None, description="Whose it is; you, if left out.")
    worker_id: AgentName | None = Field(None, description="Unique in the team; the id, if left out.")
    hostname: str | None = Field(None, min_length=1, max_length=255, description="Where it runs.")
    os_info: str | None = Field(None, min_length=1, max_length=255, description="What it runs on.")
    version: str | None = Field(None, min_length=1, max_length=50, description="Its own version.")
    capabilities: Capabilities = Field((), description="What it can do; repeat for several.")
    connector_ref: ConnectorRef = Field("pull", description="Routing hint for the connector layer.")
    profile: JsonObject = Field({}, description="Free description, a JSON object.")
    max_concurrent_jobs: Concurrency = Field(1, description="How many jobs it may hold at once.")
