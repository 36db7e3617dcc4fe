"""Sessions: an owner's open lines to an agent."""

from typing import ClassVar

from pydantic import Field

from agent_console.domain.agent_changes import Reason
from agent_console.domain.ids import AgentId, SessionId, UserId
from agent_console.domain.records import Instant, PageRequest, Record, Request
from agent_console.domain.states import SessionStatus

WAKE_SECONDS = 60.0


class Session(Record):
    columns: ClassVar[tuple[str, ...]] = ("id", "agent", "status", "created_at", "closed_at", "close_reason")

    id: SessionId
    agent_id: AgentId
    agent: str
    user_id: UserId
    status: SessionStatus = Field(description="1 active, 2 closed.")
    created_at: Instant
    closed_at: Instant | None
    close_reason: str | None


class NewSession(Request):
    agent_id: AgentId


class SessionAsked(Request):
    session_id: SessionId


class SessionQuery(PageRequest):
    """The sessions of one agent, newest first."""

    agent_id: AgentId


class SessionsClosing(Request):
    agent_id: AgentId
    reason: Reason = Field(description="Why they end.")


class SessionsClosed(Record):
    closed: int = Field(description="How many were open.")
