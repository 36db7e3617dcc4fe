"""Threads of the fleet, who takes part in them and what was said, written straight into the database."""

from datetime import datetime

from psycopg.types.json import Jsonb

from agent_console.domain.ids import AgentId, MessageId, ParticipantId, RunId, ThreadId, UserId
from tests.support.fleet import Fleet

OWNER = "ole@example.com"
OTHER = "mia@example.com"


def add_person(fleet: Fleet, email: str = OTHER, role: str = "operator") -> UserId:
    """Somebody else of the team, who takes part in nothing yet."""
    user_id = UserId.new()
    fleet.execute(
        "insert into users (team_id, id, email, full_name, role) values (%s, %s, %s, %s, %s)",
        *(fleet.team_id(), user_id, email, email.partition("@")[0].title(), role),
    )
    return user_id


def add_thread(
    fleet: Fleet, owner: str = OWNER, *, title: str | None = "launch plan", visibility: str = "private"
) -> ThreadId:
    """A thread in which its owner may do everything; nobody else takes part yet."""
    thread_id = ThreadId.new()
    fleet.execute(
        "insert into threads (team_id, id, title, visibility, created_by_user_id) values (%s, %s, %s, %s, %s)",
        *(fleet.team_id(), thread_id, title, visibility, fleet.user_id(owner)),
    )
    let_in(fleet, thread_id, owner, write=True, share=True)
    return thread_id


def let_in(
    fleet: Fleet, thread_id: ThreadId, who: str, *, read: bool = True, write: bool = False, share: bool = False
) -> ParticipantId:
    """Somebody by e-mail address, or an agent by name."""
    participant_id = ParticipantId.new()
    person: UserId | None = fleet.user_id(who) if "@" in who else None
    agent: AgentId | None = None if "@" in who else fleet.agent_id(who)
    fleet.execute(
        "insert into thread_participants (team_id, id, thread_id, participant_type, user_id, agent_id,"
        " can_read, can_write, can_share) values (%s, %s, %s, %s, %s, %s, %s, %s, %s)",
        *(fleet.team_id(), participant_id, thread_id, "human" if person else "agent", person, agent),
        *(read, write, share),
    )
    return participant_id


def say(
    fleet: Fleet,
    thread_id: ThreadId,
    who: str | None = OWNER,
    content: str = "Good morning.",
    *,
    run_id: RunId | None = None,
    at: datetime | None = None,
) -> MessageId:
    """A message of a person (by address), of an agent (by name), or of the system (None)."""
    message_id = MessageId.new()
    person = fleet.user_id(who) if who and "@" in who else None
    agent = fleet.agent_id(who) if who and "@" not in who else None
    kind = "human" if person else "agent" if agent else "system"
    fleet.execute(
        "insert into messages (team_id, id, thread_id, author_type, author_user_id, author_agent_id, content,"
        " payload, run_id, created_at) values (%s, %s, %s, %s, %s, %s, %s, %s, %s, coalesce(%s, now()))",
        *(fleet.team_id(), message_id, thread_id, kind, person, agent, content, Jsonb({}), run_id, at),
    )
    return message_id


def say_much(fleet: Fleet, thread_id: ThreadId, count: int, content: str = "line") -> None:
    """Many messages at once, `<content> 1` and so on, a millisecond after each other."""
    fleet.execute(
        """
        insert into messages (team_id, id, thread_id, author_type, author_user_id, content, created_at)
        select %s, overlay(gen_random_uuid()::text placing '7' from 15 for 1)::uuid, %s, 'human', %s,
               %s || ' ' || n, '2030-01-01'::timestamptz + n * interval '1 millisecond'
          from generate_series(1, %s) as n
        """,
        *(fleet.team_id(), thread_id, fleet.user_id(OWNER), content, count),
    )


def add_run(
    fleet: Fleet, thread_id: ThreadId, target: str = "atlas", *, asked_by: str = OWNER, ended: bool = False
) -> RunId:
    """A run without a job: enough for the rights that its target has in the thread."""
    run_id = RunId.new()
    fleet.execute(
        "insert into runs (team_id, id, thread_id, target_agent_id, requested_by_type, requested_by_user_id,"
        " status, ended_at) values (%s, %s, %s, %s, 'human', %s, %s, case when %s then now() end)",
        *(fleet.team_id(), run_id, thread_id, fleet.agent_id(target), fleet.user_id(asked_by)),
        *("succeeded" if ended else "running", ended),
    )
    return run_id


def told(fleet: Fleet, thread_id: ThreadId) -> list[tuple[object, ...]]:
    """What the audit trail tells of a thread: action, kind of thing, metadata."""
    return fleet.execute(
        "select action, resource_type, metadata from audit_log where thread_id = %s order by seq", thread_id
    )
