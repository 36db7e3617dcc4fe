"""What an agent says with each heartbeat, and what it is told in return."""

from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, Field, field_validator, model_validator

from agent_console.domain.capabilities import normal_capabilities
from agent_console.domain.ids import JobId
from agent_console.domain.records import Instant, Record, Request, Storable
from agent_console.domain.redact import redact

HEARTBEAT_SECONDS = 30
HEARTBEAT_SECONDS_BUSY = 10
METRICS_AT_MOST = 20
SHARES = frozenset({"cpu", "memory", "disk"})


class Condition(StrEnum):
    """What an agent can say of itself; silence is noticed by others."""

    ONLINE = "online"
    ERROR = "error"


def _measured(metrics: dict[str, float]) -> dict[str, float]:
    """cpu, memory and disk are shares of the whole; every other name is the agent's own."""
    for name, value in metrics.items():
        if not name.strip() or len(name) > 100:
            raise ValueError("the name of a metric has 1 to 100 characters")
        if name in SHARES and not 0 <= value <= 1:
            raise ValueError(f"{name} is a share between 0 and 1")
    return metrics


Metrics = Annotated[
    dict[str, Annotated[float, Field(allow_inf_nan=False)]],
    Field(max_length=METRICS_AT_MOST),
    Storable,
    AfterValidator(_measured),
]


class Heartbeat(Request):
    """A sign of life. What is left out stays as it was."""

    status: Condition = Field(Condition.ONLINE, description="How the agent is.")
    error_message: str | None = Field(
        None, min_length=1, max_length=2000, description="What is wrong; needed with status error."
    )
    capabilities: tuple[str, ...] | None = Field(
        None, max_length=200, description="What it can do from now on; left out, what it could before."
    )
    metrics: Metrics | None = Field(None, description="cpu, memory and disk as shares of 1, and other numbers.")
    current_jobs: tuple[JobId, ...] = Field(
        (), max_length=1000, description="The jobs it works on; their leases are renewed."
    )

    @field_validator("capabilities")
    @classmethod
    def _normal(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        return None if value is None else normal_capabilities(value)

    @field_validator("error_message")
    @classmethod
    def _without_secrets(cls, value: str | None) -> str | None:
        return None if value is None else redact(value)

    @model_validator(mode="after")
    def _error_is_told(self) -> "Heartbeat":
        told = bool((self.error_message or "").strip())
        if told != (self.status is Condition.ERROR):
            raise ValueError("error_message belongs to status error, and to nothing else")
        return self


class CommandName(StrEnum):
    DRAIN = "drain"
    HIBERNATE = "hibernate"
    STOP = "stop"
    CANCEL = "cancel"


class Command(Record):
    """What the agent is asked to do."""

    name: CommandName
    job_id: JobId | None = Field(None, description="The job to stop working on, with cancel.")


class HeartbeatAnswer(Record):
    at: Instant = Field(description="The database's time.")
    next_in_seconds: int = Field(description="When the next heartbeat is expected.")
    commands: tuple[Command, ...] = Field((), description="What to do now; each comes again until it is done.")


class Disconnected(Record):
    """What an agent left behind when it said that it ends."""

    at: Instant
    jobs: int = Field(description="How many jobs it held; they are others' to take now.")
