"""Append a message to a thread, whoever it is from: one statement, which moves the thread's own time too.

A message takes its seq and its time while its thread is locked. So in a thread the order of seq is the order in
which messages are committed, and whoever reads on after the last seq that was seen misses nothing.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from pydantic import JsonValue
from sqlalchemy import TextClause, text
from sqlalchemy.ext.asyncio import AsyncConnection

from agent_console.domain.audit import SYSTEM, Actor
from agent_console.domain.errors import NotFound
from agent_console.domain.identity import Caller
from agent_console.domain.ids import AgentId, MessageId, RunId, TeamId, ThreadId
from agent_console.domain.permissions import Role


@dataclass(frozen=True)
class Words:
    """What is said, and what it is said for."""

    content: str
    payload: Mapping[str, JsonValue] = field(default_factory=dict)
    run_id: RunId | None = None
    to_agent_ids: tuple[AgentId, ...] = ()
    broadcast: bool = False
    idempotency_key: str | None = None


@dataclass(frozen=True)
class Said:
    id: MessageId
    seq: int
    at: datetime
    intervention: bool


def _saying(allowed: str) -> TextClause:
    """The seq is taken above the lock, and so after it. A person who writes while a run is open intervenes."""
    return text(f"""
        with thread as materialized (
            select team_id, id
              from threads
             where team_id = :team_id and id = :thread_id
               for no key update
        ), said as (
            insert into messages (team_id, id, thread_id, author_type, author_user_id, author_agent_id, content,
                                  payload, run_id, to_agent_ids, broadcast, idempotency_key, created_at,
                                  intervention)
            select t.team_id, :id, t.id, :author_type, cast(:user_id as uuid), cast(:agent_id as uuid), :content,
                   cast(:payload as jsonb), cast(:run_id as uuid), cast(:to_agent_ids as jsonb), :broadcast,
                   cast(:idempotency_key as text), clock_timestamp(),
                   cast(:author_type as text) = 'human'
                   and exists (select from runs r
                                where r.team_id = t.team_id and r.thread_id = t.id and r.ended_at is null)
              from thread t
             where {allowed}
            returning seq, created_at, intervention
        ), touched as (
            update threads t
               set updated_at = said.created_at
              from said
             where t.team_id = :team_id and t.id = :thread_id
        )
        select seq, created_at, intervention from said
    """)  # noqa: S608


PERSON_MAY = """
    exists (select from thread_participants p
             where p.team_id = t.team_id and p.thread_id = t.id
               and p.participant_type = 'human' and p.user_id = :user_id and p.can_write)
"""
ACTS_THERE = """
    exists (select from runs r
             where r.team_id = t.team_id and r.thread_id = t.id and r.ended_at is null
               and r.target_agent_id = :agent_id)
"""
AGENT_MAY = f"""
    (exists (select from thread_participants p
              where p.team_id = t.team_id and p.thread_id = t.id
                and p.participant_type = 'agent' and p.agent_id = :agent_id and p.can_write)
     or {ACTS_THERE})
    and (cast(:run_id as uuid) is null
         or exists (select from runs r
                     where r.team_id = t.team_id and r.id = :run_id and r.thread_id = t.id
                       and r.target_agent_id = :agent_id))
"""  # noqa: S608

SAY = _saying("true")
SAY_IF_ALLOWED = {
    Role.ADMIN: SAY,
    Role.OPERATOR: _saying(PERSON_MAY),
    Role.VIEWER: _saying("false"),
    Role.AGENT: _saying(AGENT_MAY),
}


async def say_if_allowed(
    connection: AsyncConnection, caller: Caller, thread_id: ThreadId, author: Actor, words: Words
) -> Said | None:
    """None when the caller may not, or names a run that is not theirs, as it stands now.

    Whoever waited for the thread's lock was asked for their rights before they waited; here they are asked again.
    """
    return await _say(connection, SAY_IF_ALLOWED[caller.role], caller.team_id, thread_id, author, words)


async def say(
    connection: AsyncConnection, team_id: TeamId, thread_id: ThreadId, author: Actor, words: Words
) -> Said:
    """Without a look at anybody's rights: for what the system does in somebody's name."""
    said = await _say(connection, SAY, team_id, thread_id, author, words)
    if said is None:
        raise NotFound(f"There is no thread {thread_id}.", hint="List them: agent-console threads list")
    return said


async def post_system_message(
    connection: AsyncConnection,
    team_id: TeamId,
    thread_id: ThreadId,
    content: str,
    run_id: RunId | None = None,
    payload: Mapping[str, JsonValue] | None = None,
) -> MessageId:
    """The system's own words. The caller announces the thread, and writes the audit row of what it tells about."""
    words = Words(content, payload or {}, run_id)
    return (await say(connection, team_id, thread_id, SYSTEM, words)).id


async def _say(
    connection: AsyncConnection,
    statement: TextClause,
    team_id: TeamId,
    thread_id: ThreadId,
    author: Actor,
    words: Words,
) -> Said | None:
    message_id = MessageId.new()
    facts = {
        "team_id": team_id,
        "thread_id": thread_id,
        "id": message_id,
        "author_type": author.type.value,
        "user_id": author.user_id,
        "agent_id": author.agent_id,
        "content": words.content,
        "payload": json.dumps(dict(words.payload)),
        "run_id": words.run_id,
        "to_agent_ids": json.dumps([str(agent_id) for agent_id in words.to_agent_ids]),
        "broadcast": words.broadcast,
        "idempotency_key": words.idempotency_key,
    }
    row = (await connection.execute(statement, facts)).first()
    return None if row is None else Said(message_id, row.seq, row.created_at, row.intervention)
