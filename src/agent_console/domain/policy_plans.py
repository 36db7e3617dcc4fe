"""The whole policy as one text, and what applying it would change: all of it together, or nothing."""

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field

from agent_console.domain.agent_changes import Reason
from agent_console.domain.errors import Invalid, TooLarge
from agent_console.domain.kinds import RoutePolicy
from agent_console.domain.records import Record, Request

POLICY_FILE_BYTES = 1_000_000
CHANGES_MOST = 2_000
APPLY_SECONDS = 45.0
NOT_UTF_8 = "Nothing was changed. Save the file as UTF-8."


class Step(StrEnum):
    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"


def policy_text(content: bytes, name: str, hint: str) -> str:
    """What a file says of which one byte more than is allowed was read, which is enough to know."""
    if len(content) > POLICY_FILE_BYTES:
        raise TooLarge(f"A policy file has at most {POLICY_FILE_BYTES:,} bytes.", hint=hint)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise Invalid(f"Line {line} of {name} is not UTF-8 text.", hint=NOT_UTF_8) from error


class PolicyText(Record):
    """The whole policy as a file."""

    text: str = Field(description="YAML; apply takes it as it is.")
    routes: int
    digest: str = Field(description="Of the policy as it stands; apply with expect_digest refuses any other.")


class PolicyApplication(Request):
    text: Annotated[str, Field(min_length=1, max_length=POLICY_FILE_BYTES)] = Field(
        description="The policy as YAML, as routes export writes it."
    )
    dry_run: bool = Field(False, description="Change nothing: only say what would be changed.")
    delete_missing: bool = Field(True, description="Remove the routes that the file does not name.")
    expect_digest: str | None = Field(
        None, pattern="^[0-9a-f]{64}$", description="Refuse if the policy is no longer the one of this digest."
    )
    reason: Reason | None = Field(None, description="Why; the history of every changed route keeps it.")


class PlannedStep(Record):
    """One route that changes."""

    columns: ClassVar[tuple[str, ...]] = ("step", "from_agent", "to_agent", "was", "becomes")

    step: Step
    from_agent: str
    to_agent: str
    was: RoutePolicy | None = Field(description="Null when the pair had no route.")
    becomes: RoutePolicy | None = Field(description="Null when the pair has none any more.")
    old_notes: str | None
    notes: str | None


class PolicyPlan(Record):
    """What a file changes: all of it together, or nothing."""

    applied: bool
    digest: str = Field(description="Of the policy the plan was made on.")
    created: int
    updated: int
    deleted: int
    unchanged: int
    steps: tuple[PlannedStep, ...]
    apply_id: str | None = Field(None, description="Stands in the audit row of every route that was changed.")
