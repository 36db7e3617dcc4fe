"""An owner's open lines to an agent."""

from agent_console.domain.audit import audit_action
from agent_console.domain.permissions import Permission
from agent_console.domain.records import Page
from agent_console.domain.sessions import (
    WAKE_SECONDS,
    NewSession,
    Session,
    SessionAsked,
    SessionQuery,
    SessionsClosed,
    SessionsClosing,
)
from agent_console.repository.operations.declared import AnyOperation, Operation, Verb

SESSION_OPENED = audit_action("session.created", "agent_id")
SESSION_CLOSED = audit_action("session.closed", "agent_id")
SESSIONS_ALL_CLOSED = audit_action("session.close_all", "sessions")

SESSIONS_OPEN = Operation(
    name="sessions.open",
    summary="Open a session with an agent of yours; wakes a hibernating one.",
    verb=Verb.POST,
    path="/v1/agents/{agent_id}/sessions",
    request=NewSession,
    answer=Session,
    permission=Permission.WORK_QUEUE,
    audit=SESSION_OPENED,
    created=True,
    waits_seconds=WAKE_SECONDS,
)
SESSIONS_LIST = Operation(
    name="sessions.list",
    summary="The sessions of an agent of yours, newest first.",
    verb=Verb.GET,
    path="/v1/agents/{agent_id}/sessions",
    request=SessionQuery,
    answer=Page[Session],
    permission=Permission.SEE_FLEET,
)
SESSIONS_GET = Operation(
    name="sessions.get",
    summary="One session, whole.",
    verb=Verb.GET,
    path="/v1/sessions/{session_id}",
    request=SessionAsked,
    answer=Session,
    permission=Permission.SEE_FLEET,
)
SESSIONS_CLOSE = Operation(
    name="sessions.close",
    summary="Close a session; closing it twice changes nothing.",
    verb=Verb.DELETE,
    path="/v1/sessions/{session_id}",
    request=SessionAsked,
    answer=Session,
    permission=Permission.WORK_QUEUE,
    audit=SESSION_CLOSED,
)
SESSIONS_CLOSE_ALL = Operation(
    name="sessions.close_all",
    summary="Emergency: close every open session of an agent, whoever owns it.",
    verb=Verb.POST,
    path="/v1/agents/{agent_id}/sessions/close",
    request=SessionsClosing,
    answer=SessionsClosed,
    permission=Permission.ADMINISTER,
    audit=SESSIONS_ALL_CLOSED,
    danger=True,
)

NOUNS = {"sessions": "Open lines to your agents."}

SESSIONS: tuple[AnyOperation, ...] = (
    SESSIONS_OPEN,
    SESSIONS_LIST,
    SESSIONS_GET,
    SESSIONS_CLOSE,
    SESSIONS_CLOSE_ALL,
)
