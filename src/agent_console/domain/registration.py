"""How an agent comes in, and how it gets a new key."""

from pydantic import ConfigDict, Field, field_validator

from agent_console.domain.agent_changes import AgentName, Capabilities, ConnectorRef
from agent_console.domain.agents import Agent
from agent_console.domain.ids import AgentId
from agent_console.domain.records import JsonObject, Record, Request
from agent_console.domain.tokens import Overlap, ShownOnce

ASK_AGAIN_MINUTES = 10


class AgentRegistration(Request):
    """An agent that introduces itself. The same token and nonce again, soon after, give a key once more."""

    # The token must not be repeated by the complaint about another field.
    model_config = ConfigDict(hide_input_in_errors=True)

    token: str = Field(min_length=1, max_length=200, repr=False, description="The registration token, art_key_…")
    nonce: str = Field(
        pattern=r"^[!-~]{16,128}$",
        repr=False,
        description="16 to 128 random characters of the agent's own; keep them until the key has arrived.",
    )
    name: AgentName = Field(description="The agent's name, unique in the team.")
    worker_id: AgentName | None = Field(
        None, description="How it names itself to the queue; its name if left out."
    )
    hostname: str | None = Field(None, min_length=1, max_length=255, description="The machine it runs on.")
    os_info: str | None = Field(None, min_length=1, max_length=255, description="The operating system there.")
    version: str | None = Field(None, min_length=1, max_length=50, description="The agent's own version.")
    binary_checksum: str | None = Field(
        None, pattern="^[0-9a-fA-F]{64}$", description="SHA-256 of the agent's program, in hex."
    )
    capabilities: Capabilities = Field((), description="What it can do; repeat for several.")
    connector_ref: ConnectorRef = Field("pull", description="How it is reached; a place, never a secret.")
    profile: JsonObject = Field({}, description="Free facts about it, a JSON object.")

    @field_validator("binary_checksum")
    @classmethod
    def _lower(cls, value: str | None) -> str | None:
        return None if value is None else value.lower()


class AgentWithKey(Record):
    """An agent and the key it signs in with from now on."""

    agent: Agent
    secret: ShownOnce


class Registered(AgentWithKey):
    """What a newly registered agent is told."""


class MintedKey(AgentWithKey):
    """A new key for a known agent."""


class KeyRotation(Request):
    agent_id: AgentId
    overlap_seconds: Overlap = 0
