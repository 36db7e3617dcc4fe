"""Logs that can be followed row by row: each row has a position, and who goes on after the last one it has seen
loses nothing and is told nothing twice."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Generic, Protocol, TypeVar

from pydantic import BaseModel, Field, model_validator

from agent_console.domain.approvals import ApprovalListed
from agent_console.domain.audit_trail import AuditRow
from agent_console.domain.ids import JobId, ThreadId
from agent_console.domain.job_events import JobEvent
from agent_console.domain.messages import Message
from agent_console.domain.records import LARGEST_NUMBER, Request


class LogName(StrEnum):
    MESSAGES = "messages"
    JOB_EVENTS = "job_events"
    APPROVALS = "approvals"
    AUDIT = "audit"


Row = TypeVar("Row", bound=BaseModel)
Held_co = TypeVar("Held_co", bound=BaseModel, covariant=True)


@dataclass(frozen=True)
class Log(Generic[Held_co]):
    """`row` is what it holds; the ids say of what."""

    name: LogName
    row: type[Held_co]
    thread_id: ThreadId | None = None
    job_id: JobId | None = None

    @property
    def thing(self) -> ThreadId | JobId | None:
        """What its rows belong to; None when that is the whole team."""
        return self.thread_id or self.job_id


@dataclass(frozen=True)
class Followed(Generic[Held_co]):
    """A row and its position. The first has no row: it is where the log ended when it was opened."""

    position: int
    row: Held_co | None = None

    @cached_property
    def as_json(self) -> str:
        """Made once, however many are sent it."""
        return "{}" if self.row is None else self.row.model_dump_json()


def messages_of(thread_id: ThreadId) -> Log[Message]:
    return Log(LogName.MESSAGES, Message, thread_id=thread_id)


def story_of(job_id: JobId) -> Log[JobEvent]:
    return Log(LogName.JOB_EVENTS, JobEvent, job_id=job_id)


# Each approval that the reader may see, as it is now, whenever it was asked for or has ended. Positions are those
# of the sealed trail, the one order in which nobody commits late.
APPROVALS_LOG: Log[ApprovalListed] = Log(LogName.APPROVALS, ApprovalListed)
AUDIT_LOG: Log[AuditRow] = Log(LogName.AUDIT, AuditRow)


class LogQuery(Request):
    """Which log, and from where."""

    log: LogName = Field(description="What to follow.")
    thread_id: ThreadId | None = Field(None, description="The thread whose messages are followed.")
    job_id: JobId | None = Field(None, description="The job whose events are followed.")
    after: int | None = Field(
        None,
        ge=0,
        le=LARGEST_NUMBER,
        description="Go on after this position; 0 is the beginning. Without it, only what comes from now on."
        " The header Last-Event-ID says the same, and wins.",
    )

    @model_validator(mode="after")
    def _of_one_thing(self) -> "LogQuery":
        if (self.thread_id is not None) is not (self.log is LogName.MESSAGES):
            raise ValueError("`thread_id` belongs to messages, and messages need it")
        if (self.job_id is not None) is not (self.log is LogName.JOB_EVENTS):
            raise ValueError("`job_id` belongs to job_events, and job_events need it")
        return self

    @property
    def wanted(self) -> Log[BaseModel]:
        match self.log:
            case LogName.MESSAGES if self.thread_id is not None:
                return messages_of(self.thread_id)
            case LogName.JOB_EVENTS if self.job_id is not None:
                return story_of(self.job_id)
            case LogName.APPROVALS:
                return APPROVALS_LOG
            case _:
                return AUDIT_LOG


class FollowsLogs(Protocol):
    """Both repositories do."""

    def follow(self, log: Log[Row], after: int | None = None) -> AsyncGenerator[Followed[Row], None]:
        """Rows after a position, then those that come, until the reader may no longer see them: that is a
        ConsoleError. Lost connections are made anew, and nothing is lost or repeated."""
        ...
