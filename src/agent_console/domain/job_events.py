"""A job's story, line by line."""

from typing import ClassVar

from pydantic import Field, JsonValue

from agent_console.domain.ids import JobEventId, JobId, UserId
from agent_console.domain.kinds import EventLevel
from agent_console.domain.records import LARGEST_NUMBER, Instant, Record, Request

EVENTS_LIMIT = 200
EVENTS_LIMIT_MAX = 500


class JobEvent(Record):
    """`seq` grows with every line of a job, also when two have the same time."""

    columns: ClassVar[tuple[str, ...]] = ("seq", "created_at", "level", "attempt", "created_by", "message")

    id: JobEventId
    seq: int
    level: EventLevel
    message: str
    payload: dict[str, JsonValue] | None
    attempt: int | None
    created_by_user_id: UserId | None
    created_by: str | None
    created_at: Instant


class JobEventQuery(Request):
    """The story of a job, oldest first. To follow it, ask again after the last `seq` that was seen; to read it
    from its end, ask for the newest, and then for those before the last `seq` that was seen."""

    job_id: JobId
    limit: int = Field(EVENTS_LIMIT, ge=1, le=EVENTS_LIMIT_MAX, description="How many lines at most.")
    after_seq: int | None = Field(None, ge=0, le=LARGEST_NUMBER, description="Only what came after this line.")
    newest: bool = Field(False, description="Newest first instead of oldest first.")
    before_seq: int | None = Field(None, ge=0, le=LARGEST_NUMBER, description="Only what came before this line.")
    level: EventLevel | None = Field(None, description="Only lines of this level or a worse one.")
