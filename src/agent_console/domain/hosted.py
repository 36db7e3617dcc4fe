"""Agents that are run for their owner, and the moves of their lifecycle."""

from typing import Annotated

from pydantic import BeforeValidator, Field

from agent_console.domain.agent_changes import AgentName, Reason
from agent_console.domain.agents import Agent
from agent_console.domain.ids import AgentId
from agent_console.domain.records import NotBlank, Record, Request
from agent_console.domain.states import Lifecycle
from agent_console.domain.tokens import ShownOnce

IDLE_AFTER_SECONDS = 300
HIBERNATE_AFTER_SECONDS = 1800


class NewHostedAgent(Request):
    name: AgentName = Field(description="Unique in the team.")
    cpu_millicores: int = Field(500, ge=100, le=4000, description="Thousandths of a core.")
    memory_mb: int = Field(512, ge=128, le=8192, description="Megabytes of memory.")
    runtime_version: Annotated[str, NotBlank] = Field(
        "latest", min_length=1, max_length=100, description="Which runtime it is started with."
    )


class HostedAgent(Record):
    """A new hosted agent with its key, which is shown this once."""

    agent: Agent
    secret: ShownOnce


def _by_name(value: object) -> object:
    """`hibernating` means 4 for whoever types it."""
    if isinstance(value, str) and value.upper() in Lifecycle.__members__:
        return Lifecycle[value.upper()]
    return value


class LifecycleMove(Request):
    agent_id: AgentId
    to: Annotated[Lifecycle, BeforeValidator(_by_name)] = Field(
        description="The state it goes to, by its name or its number from 1 to 7."
    )
    reason: Reason | None = Field(None, description="What went wrong, kept while it is in error.")
