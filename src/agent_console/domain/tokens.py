"""Tokens: what lets an agent in, what a worker may take, and what a person signs in with.

A secret is in the answer that minted it and nowhere else; every other answer shows only its prefix.
"""

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field, field_validator

from agent_console.domain.capabilities import normal_capabilities, normal_words
from agent_console.domain.ids import AgentId, OperatorTokenId, RegistrationTokenId, UserId, WorkerTokenId
from agent_console.domain.records import Instant, PageRequest, Record, Request

REGISTRATION_HOURS = 24
REGISTRATION_HOURS_MAX = 168
OPERATOR_DAYS = 90
OPERATOR_DAYS_MAX = 3650
OVERLAP_SECONDS_MAX = 86_400
POLICY_WORDS = 200
LONGEST_REPOSITORY = 500
LONGEST_JOB_TYPE = 100

ShownOnce = Annotated[str, Field(repr=False, description="The secret; it is shown this once and never again.")]
Overlap = Annotated[
    int,
    Field(ge=0, le=OVERLAP_SECONDS_MAX, description="How many seconds the old secret goes on working."),
]
PolicyList = Annotated[tuple[str, ...], Field(max_length=POLICY_WORDS)]


class RegistrationTokenState(StrEnum):
    FRESH = "fresh"
    USED = "used"
    EXPIRED = "expired"
    REVOKED = "revoked"


class TokenState(StrEnum):
    ACTIVE = "active"
    EXPIRED = "expired"
    REVOKED = "revoked"


class RegistrationToken(Record):
    """Lets one agent in, once."""

    columns: ClassVar[tuple[str, ...]] = (
        *("id", "name", "token_prefix", "state", "expires_at", "created_by", "used_by"),
    )

    id: RegistrationTokenId
    name: str | None
    token_prefix: str
    state: RegistrationTokenState
    expires_at: Instant
    created_by_user_id: UserId
    created_by: str
    used_by_agent_id: AgentId | None
    used_by: str | None = Field(description="The name of the agent that came in with it.")
    used_at: Instant | None
    revoked_at: Instant | None
    created_at: Instant


class MintedRegistrationToken(RegistrationToken):
    secret: ShownOnce


class NewRegistrationToken(Request):
    name: str | None = Field(None, min_length=1, max_length=100, description="What it is for.")
    hours: int = Field(
        REGISTRATION_HOURS, ge=1, le=REGISTRATION_HOURS_MAX, description="How many hours it can be used."
    )


class RegistrationTokenQuery(PageRequest):
    """The registration tokens of the team, newest first."""


class RegistrationTokenAsked(Request):
    token_id: RegistrationTokenId


class WorkerToken(Record):
    """A worker's own credential with its policy. A list that is null allows any, an empty one none."""

    columns: ClassVar[tuple[str, ...]] = (
        *("id", "worker_id", "token_prefix", "state", "description", "expires_at", "created_by"),
    )

    id: WorkerTokenId
    worker_id: str
    token_prefix: str
    state: TokenState
    is_active: bool
    description: str | None
    allowed_repositories: tuple[str, ...] | None
    allowed_job_types: tuple[str, ...] | None
    capabilities: tuple[str, ...] | None
    expires_at: Instant | None = Field(description="Set when it was rotated with an overlap.")
    created_by_user_id: UserId
    created_by: str
    created_at: Instant
    updated_at: Instant


class MintedWorkerToken(WorkerToken):
    secret: ShownOnce


class NewWorkerToken(Request):
    """A credential for the agent with this worker id."""

    worker_id: str = Field(min_length=1, max_length=255, description="The worker id of a living agent.")
    description: str | None = Field(None, max_length=500, description="What it is for.")
    allowed_repositories: PolicyList | None = Field(
        None, description="Only jobs of these repositories; left out, of any, and an empty list is none."
    )
    allowed_job_types: PolicyList | None = Field(
        None, description="Only jobs of these types; left out, of any, and an empty list is none."
    )
    capabilities: PolicyList | None = Field(
        None, description="Only these capabilities; left out, what the agent reports, and an empty list is none."
    )

    @field_validator("allowed_repositories")
    @classmethod
    def _clean_repositories(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        return None if value is None else normal_words(value, "a repository", LONGEST_REPOSITORY)

    @field_validator("allowed_job_types")
    @classmethod
    def _clean_job_types(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        return None if value is None else normal_words(value, "a job type", LONGEST_JOB_TYPE)

    @field_validator("capabilities")
    @classmethod
    def _clean_capabilities(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        return None if value is None else normal_capabilities(value)


class WorkerTokenQuery(PageRequest):
    """The worker tokens of the team, newest first."""

    worker_id: str | None = Field(None, min_length=1, max_length=255, description="Only of this worker.")


class WorkerTokenAsked(Request):
    token_id: WorkerTokenId


class WorkerTokenRotation(WorkerTokenAsked):
    overlap_seconds: Overlap = 0


class OperatorToken(Record):
    """A person's credential; what it may do is what the person may do."""

    columns: ClassVar[tuple[str, ...]] = (
        *("id", "user", "name", "token_prefix", "state", "expires_at", "last_used_at"),
    )

    id: OperatorTokenId
    user_id: UserId
    user: str
    name: str | None
    token_prefix: str
    state: TokenState
    expires_at: Instant | None
    revoked_at: Instant | None
    last_used_at: Instant | None
    created_by_user_id: UserId
    created_by: str
    created_at: Instant


class MintedOperatorToken(OperatorToken):
    secret: ShownOnce


class NewOperatorToken(Request):
    user_id: UserId = Field(description="Whose token it is.")
    name: str | None = Field(None, min_length=1, max_length=100, description="What it is for.")
    days: int = Field(OPERATOR_DAYS, ge=1, le=OPERATOR_DAYS_MAX, description="How many days it works.")


class OperatorTokenQuery(PageRequest):
    """The operator tokens of the team (or, for all but administrators, one's own), newest first."""

    user_id: UserId | None = Field(None, description="Only of this person.")


class OperatorTokenAsked(Request):
    token_id: OperatorTokenId


class OperatorTokenRotation(OperatorTokenAsked):
    overlap_seconds: Overlap = 0
    days: int = Field(OPERATOR_DAYS, ge=1, le=OPERATOR_DAYS_MAX, description="How many days the new one works.")
