"""Sessions: opening one may wake its agent; only the agent's owner has them."""

import asyncio
from time import monotonic
from typing import TYPE_CHECKING, Any

from sqlalchemy import Row, Select, func, insert, select, update

from agent_console.database.tables import agent_runtime, agents, sessions, users
from agent_console.domain.agents import OFFLINE_AFTER_SECONDS, AgentAsked
from agent_console.domain.audit import AuditEvent
from agent_console.domain.errors import AgentUnavailable, Conflict, ConsoleError, Forbidden, NotFound
from agent_console.domain.ids import AgentId, SessionId, TeamId
from agent_console.domain.records import Page, Record
from agent_console.domain.sessions import (
    WAKE_SECONDS,
    NewSession,
    Session,
    SessionAsked,
    SessionQuery,
    SessionsClosed,
    SessionsClosing,
)
from agent_console.domain.states import Lifecycle, Presence, SessionStatus
from agent_console.repository.operations.agents import AGENT_MOVED, AGENT_STARTED
from agent_console.repository.operations.sessions import (
    SESSION_CLOSED,
    SESSION_OPENED,
    SESSIONS_ALL_CLOSED,
    SESSIONS_CLOSE,
    SESSIONS_CLOSE_ALL,
    SESSIONS_GET,
    SESSIONS_LIST,
    SESSIONS_OPEN,
)
from agent_console.repository.port import Topic
from agent_console.repository.postgres import audit
from agent_console.repository.postgres.identify import refused_credential
from agent_console.repository.postgres.own_pace import answers_at_own_pace
from agent_console.repository.postgres.pages import page_of, position
from agent_console.repository.postgres.registry.agent_changes import close, locked_agent, tell
from agent_console.repository.postgres.registry.agents import get_agent
from agent_console.repository.postgres.registry.hosted import set_lifecycle
from agent_console.repository.postgres.work import Work, answers

if TYPE_CHECKING:
    from agent_console.repository.postgres.repository import PostgresRepository

LOOK_AGAIN_SECONDS = 0.25


class Waking(Record):
    """The session, or nothing while the agent is still waking up."""

    session: Session | None = None


def shown_sessions(team_id: TeamId) -> Select[Any]:
    """By key or by sessions_agent_idx; the agent's name outlives the agent."""
    return (
        select(
            *(sessions.c[name] for name in Session.model_fields if name in sessions.c),
            agents.c.name.label("agent"),
            agents.c.owner_user_id,
        )
        .join(agents, (agents.c.team_id == sessions.c.team_id) & (agents.c.id == sessions.c.agent_id))
        .where(sessions.c.team_id == team_id)
    )


def _require_owner(work: Work, owner_user_id: object) -> None:
    if work.caller.user_id != owner_user_id:
        raise Forbidden("Only the owner of an agent has sessions with it.", hint="Ask the owner.")


async def _session(work: Work, session_id: SessionId) -> Session:
    wanted = shown_sessions(work.caller.team_id).where(sessions.c.id == session_id)
    found = (await work.connection.execute(wanted)).mappings().first()
    if found is None:
        raise NotFound(f"There is no session {session_id}.", hint="List them: agent-console sessions list agt_…")
    _require_owner(work, found["owner_user_id"])
    return Session.model_validate(dict(found))


@answers_at_own_pace(SESSIONS_OPEN)
async def open_session(repository: "PostgresRepository", asked: NewSession) -> Session:
    """Each look is a transaction of its own: nothing is held while the agent wakes up."""
    give_up_at = monotonic() + WAKE_SECONDS
    while True:
        waking = await repository.in_one_transaction(SESSIONS_OPEN, open_or_wake, asked)
        if waking.session is not None:
            return waking.session
        if monotonic() >= give_up_at:
            raise AgentUnavailable(
                f"Agent {asked.agent_id} did not wake up within {WAKE_SECONDS:g} s.",
                hint="Try again in a minute, or look at it: agent-console agents get",
            )
        await asyncio.sleep(LOOK_AGAIN_SECONDS)


async def _require_active(work: Work) -> None:
    """Held to the end, so that no session begins behind the back of whoever deactivates its user; and before the
    agent, as they lock the two."""
    mine = select(users.c.is_active).where(
        users.c.team_id == work.caller.team_id, users.c.id == work.caller.user_id
    )
    if not (await work.connection.execute(mine.with_for_update(read=True))).scalar_one():
        raise refused_credential()


async def open_or_wake(work: Work, asked: NewSession) -> Waking:
    await _require_active(work)
    agent = await locked_agent(work, asked.agent_id)
    _require_owner(work, agent.owner_user_id)
    if agent.revoked_at is not None:
        raise Conflict(
            f"Agent {asked.agent_id} is revoked.", hint="Choose another agent: agent-console agents list"
        )
    if not agent.hosted:
        await _require_online(work, asked.agent_id)
        return await _opened(work, agent)
    match Lifecycle(agent.lifecycle):
        case Lifecycle.RUNNING:
            return await _opened(work, agent)
        case Lifecycle.IDLE:
            await set_lifecycle(work, asked.agent_id, Lifecycle.RUNNING)
            await tell(work, AGENT_STARTED, asked.agent_id, agent.at, {"from": "idle", "to": "running"})
            return await _opened(work, agent)
        case Lifecycle.HIBERNATING:
            await set_lifecycle(work, asked.agent_id, Lifecycle.PROVISIONING)
            facts = {"from": "hibernating", "to": "provisioning"}
            await tell(work, AGENT_MOVED, asked.agent_id, agent.at, facts)
            return Waking()
        case Lifecycle.PROVISIONING:
            return Waking()
        case _:
            raise _unavailable(asked.agent_id, Lifecycle(agent.lifecycle).name.lower())


def _unavailable(agent_id: AgentId, state: str) -> ConsoleError:
    return AgentUnavailable(
        f"Agent {agent_id} is {state} and has no sessions.",
        hint="It has to be running or idle, or hibernating to be woken.",
        details={"state": state},
    )


async def _require_online(work: Work, agent_id: AgentId) -> None:
    status = (await get_agent(work, AgentAsked(agent_id=agent_id))).status
    if status is not Presence.ONLINE:
        raise AgentUnavailable(
            f"Agent {agent_id} is {status.value}.",
            hint=f"It has to be online: a heartbeat within {OFFLINE_AFTER_SECONDS} s.",
            details={"state": status.value},
        )


async def _opened(work: Work, agent: Row[Any]) -> Waking:
    session_id = SessionId.new()
    await work.connection.execute(
        insert(sessions).values(
            team_id=work.caller.team_id, id=session_id, agent_id=agent.id, user_id=work.caller.user_id
        )
    )
    event = AuditEvent(SESSION_OPENED, "session", str(session_id), metadata={"agent_id": str(agent.id)})
    await audit.append(work, event, agent.at)
    work.announce(Topic.SESSIONS, session_id)
    work.announce(Topic.AGENTS, agent.id)
    return Waking(session=await _session(work, session_id))


@answers(SESSIONS_GET)
async def get_session(work: Work, asked: SessionAsked) -> Session:
    return await _session(work, asked.session_id)


@answers(SESSIONS_LIST)
async def list_sessions(work: Work, query: SessionQuery) -> Page[Session]:
    agent = await get_agent(work, AgentAsked(agent_id=query.agent_id))
    _require_owner(work, agent.owner_user_id)
    wanted = (
        shown_sessions(work.caller.team_id)
        .where(sessions.c.agent_id == query.agent_id)
        .order_by(sessions.c.id.desc())
        .limit(query.limit + 1)
    )
    if (after := position(query.after, SessionId)) is not None:
        wanted = wanted.where(sessions.c.id < after)
    rows = (await work.connection.execute(wanted)).mappings().all()
    return page_of(Page[Session], rows, query.limit, SessionId)


@answers(SESSIONS_CLOSE)
async def close_session(work: Work, asked: SessionAsked) -> Session:
    session = await _session(work, asked.session_id)
    if session.status is SessionStatus.CLOSED:
        return session
    # The agent's state before its sessions, as everyone locks them.
    await work.connection.execute(
        update(agent_runtime)
        .where(agent_runtime.c.team_id == work.caller.team_id, agent_runtime.c.agent_id == session.agent_id)
        .values(last_used_at=func.now())
    )
    closing = (
        update(sessions)
        .where(sessions.c.team_id == work.caller.team_id, sessions.c.id == asked.session_id)
        .where(sessions.c.status == SessionStatus.ACTIVE)
        .values(status=SessionStatus.CLOSED, closed_at=func.now(), close_reason="closed by its owner")
        .returning(sessions.c.closed_at)
    )
    if (at := (await work.connection.execute(closing)).scalar()) is None:
        return await _session(work, asked.session_id)
    facts = {"agent_id": str(session.agent_id)}
    await audit.append(work, AuditEvent(SESSION_CLOSED, "session", str(asked.session_id), metadata=facts), at)
    work.announce(Topic.SESSIONS, asked.session_id)
    work.announce(Topic.AGENTS, session.agent_id)
    return await _session(work, asked.session_id)


@answers(SESSIONS_CLOSE_ALL)
async def close_all_sessions(work: Work, asked: SessionsClosing) -> SessionsClosed:
    agent = await locked_agent(work, asked.agent_id)
    closed = await close(work, asked.agent_id, asked.reason)
    if closed:
        await tell(work, SESSIONS_ALL_CLOSED, asked.agent_id, agent.at, {"sessions": closed}, asked.reason)
    return SessionsClosed(closed=closed)
