"""What somebody should look at now: one list over everything that can be in trouble."""

from enum import StrEnum
from typing import ClassVar

from pydantic import Field

from agent_console.domain.records import Instant, Record, Request

OF_EACH = 50
"""So many of each kind at most; where there are more, their own list has them."""
RUNS_SINCE_HOURS = 24


class AttentionKind(StrEnum):
    APPROVAL = "approval"
    DEAD_LETTER = "dead_letter"
    AGENT_ERROR = "agent_error"
    AGENT_SILENT = "agent_silent"
    RUN_TIMEOUT = "run_timeout"


NOUN_OF = {
    AttentionKind.APPROVAL: "approvals",
    AttentionKind.DEAD_LETTER: "jobs",
    AttentionKind.AGENT_ERROR: "agents",
    AttentionKind.AGENT_SILENT: "agents",
    AttentionKind.RUN_TIMEOUT: "runs",
}


class AttentionQuery(Request):
    limit: int = Field(OF_EACH, ge=1, le=OF_EACH, description="How many of each kind at most.")


class AttentionItem(Record):
    """One thing in trouble. `id` is the thing's own, in the list of its `noun`; `name` and `says` are words of
    others."""

    columns: ClassVar[tuple[str, ...]] = ("id", "kind", "name", "since", "until", "says")

    id: str
    kind: AttentionKind
    noun: str = Field(description="Where it can be mended: approvals, jobs, agents or runs.")
    name: str = Field(description="What it is called: who asks whom, the type of a job, the name of an agent.")
    since: Instant | None = Field(description="When the trouble began, as far as it is known.")
    until: Instant | None = Field(None, description="When an approval expires.")
    says: str | None = Field(None, description="What was said about it, such as the last error.")
    more: bool = Field(False, description="This is the last of as many of its kind as are listed; there are more.")
