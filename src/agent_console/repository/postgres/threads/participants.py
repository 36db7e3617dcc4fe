"""Who takes part in a thread. Every change holds the thread's lock, so that its rights change one at a time."""

from typing import Any

from sqlalchemy import Row, Select, and_, case, delete, select, text, update
from sqlalchemy.dialects.postgresql import insert

from agent_console.database.tables import agents, thread_participants, users
from agent_console.domain.audit import AuditEvent, Facts
from agent_console.domain.errors import Conflict, ConsoleError, Forbidden, Invalid, NotFound
from agent_console.domain.ids import ParticipantId, TeamId, ThreadId
from agent_console.domain.kinds import ParticipantType, UserKind
from agent_console.domain.permissions import Role
from agent_console.domain.records import Page
from agent_console.domain.threads import (
    NewParticipant,
    Participant,
    ParticipantAsked,
    ParticipantQuery,
    ParticipantRights,
)
from agent_console.repository.operations.threads import (
    RIGHTS_CHANGED,
    RIGHTS_GRANTED,
    RIGHTS_REVOKED,
    THREADS_CHANGE_RIGHTS,
    THREADS_GRANT,
    THREADS_PARTICIPANTS,
    THREADS_REVOKE,
)
from agent_console.repository.port import Topic
from agent_console.repository.postgres import audit
from agent_console.repository.postgres.pages import page_of, position
from agent_console.repository.postgres.registry.agent_words import no_agent
from agent_console.repository.postgres.threads.access import Access, thread_access
from agent_console.repository.postgres.threads.locked_thread import locked_access
from agent_console.repository.postgres.work import Work, answers

RIGHTS = ("can_read", "can_write", "can_share")

person = users.alias("person")
granter = users.alias("granter")

# Somebody else who can use the right to share: it is worth nothing to a viewer or to who is deactivated.
ANOTHER_WHO_SHARES = text("""
    select exists (
        select from thread_participants p
          join users u on u.team_id = p.team_id and u.id = p.user_id
         where p.team_id = :team_id and p.thread_id = :thread_id and p.participant_type = 'human'
           and p.can_share and p.id <> :participant_id and u.is_active and u.role in ('admin', 'operator'))
""")


def shown_participants(team_id: TeamId, thread_id: ThreadId) -> Select[Any]:
    """In the order of thread_participants_thread_idx; the names by key."""
    its_user = and_(
        person.c.team_id == thread_participants.c.team_id, person.c.id == thread_participants.c.user_id
    )
    its_agent = and_(
        agents.c.team_id == thread_participants.c.team_id, agents.c.id == thread_participants.c.agent_id
    )
    let_in = and_(
        granter.c.team_id == thread_participants.c.team_id,
        granter.c.id == thread_participants.c.created_by_user_id,
    )
    return (
        select(
            *(thread_participants.c[name] for name in Participant.model_fields if name in thread_participants.c),
            case((agents.c.id.is_not(None), agents.c.name), else_=person.c.full_name).label("name"),
            granter.c.full_name.label("created_by"),
        )
        .select_from(
            thread_participants.outerjoin(person, its_user).outerjoin(agents, its_agent).outerjoin(granter, let_in)
        )
        .where(thread_participants.c.team_id == team_id, thread_participants.c.thread_id == thread_id)
        .order_by(thread_participants.c.id)
    )


@answers(THREADS_PARTICIPANTS)
async def list_participants(work: Work, query: ParticipantQuery) -> Page[Participant]:
    await thread_access(work, query.thread_id)
    wanted = shown_participants(work.caller.team_id, query.thread_id).limit(query.limit + 1)
    if (after := position(query.after, ParticipantId)) is not None:
        wanted = wanted.where(thread_participants.c.id > after)
    rows = (await work.connection.execute(wanted)).mappings().all()
    return page_of(Page[Participant], rows, query.limit, ParticipantId)


async def _participant(work: Work, thread_id: ThreadId, participant_id: ParticipantId) -> Participant:
    wanted = shown_participants(work.caller.team_id, thread_id).where(thread_participants.c.id == participant_id)
    found = (await work.connection.execute(wanted)).mappings().first()
    if found is None:
        raise NotFound(
            f"There is no participant {participant_id} in thread {thread_id}.",
            hint="List them: agent-console threads participants thr_…",
        )
    return Participant.model_validate(dict(found))


async def _tell(work: Work, action: str, who: Participant, access: Access) -> None:
    facts: Facts = {
        "user_id": None if who.user_id is None else str(who.user_id),
        "agent_id": None if who.agent_id is None else str(who.agent_id),
    }
    if action != RIGHTS_REVOKED:
        facts |= {right: getattr(who, right) for right in RIGHTS}
    event = AuditEvent(action, "participant", str(who.id), facts, thread_id=who.thread_id)
    await audit.append(work, event, access.at)
    work.announce(Topic.THREADS, who.thread_id)


def _require_read_with(can_read: bool, can_write: bool, can_share: bool) -> None:
    if not can_read and (can_write or can_share):
        raise Invalid(
            "Whoever may write or share must be able to read.",
            hint="Give the right to read too, or take the others.",
            details={"fields": [{"field": "can_read", "problem": "must be true with can_write or can_share"}]},
        )


def _require_own(access: Access, *, gives_write: bool) -> None:
    """Whoever shares has the right to share and to read; only the right to write may be missing."""
    if gives_write and not access.can_write:
        raise Forbidden(
            "You can't give the right to write, because you do not have it.",
            hint="Ask somebody who has it.",
        )


@answers(THREADS_GRANT)
async def grant(work: Work, new: NewParticipant) -> Participant:
    access = await locked_access(work, new.thread_id)
    access.require_share()
    if (new.user_id is None) == (new.agent_id is None):
        raise Invalid(
            "Name either a person or an agent.",
            hint="Give user_id or agent_id, not both.",
            details={"fields": [{"field": "user_id", "problem": "exactly one of user_id and agent_id"}]},
        )
    _require_read_with(new.can_read, new.can_write, new.can_share)
    _require_own(access, gives_write=new.can_write)
    await _require_welcome(work, new)
    participant_id = ParticipantId.new()
    kind = ParticipantType.HUMAN if new.user_id is not None else ParticipantType.AGENT
    made = await work.connection.execute(
        insert(thread_participants)
        .values(
            new.model_dump()
            | {
                "team_id": work.caller.team_id,
                "id": participant_id,
                "participant_type": kind.value,
                "created_by_user_id": work.caller.user_id,
            }
        )
        .on_conflict_do_nothing()
        .returning(thread_participants.c.id)
    )
    if made.first() is None:
        raise Conflict(
            f"{new.user_id or new.agent_id} takes part in thread {new.thread_id} already.",
            hint="Change the rights instead: agent-console threads change-rights",
        )
    who = await _participant(work, new.thread_id, participant_id)
    await _tell(work, RIGHTS_GRANTED, who, access)
    return who


async def _require_welcome(work: Work, new: NewParticipant) -> None:
    """Shared, so that nobody deactivates or deletes them between this look and the row that refers to them."""
    if new.user_id is not None:
        wanted = select(users.c.kind, users.c.is_active).where(
            users.c.team_id == work.caller.team_id, users.c.id == new.user_id
        )
        if (refusal := _unwelcome_user(new, await _shared(work, wanted))) is not None:
            raise refusal
        return
    living = select(agents.c.revoked_at).where(
        agents.c.team_id == work.caller.team_id, agents.c.id == new.agent_id, agents.c.deleted_at.is_(None)
    )
    agent = await _shared(work, living)
    if agent is None:
        raise no_agent(str(new.agent_id))
    if agent.revoked_at is not None:
        raise Conflict(f"Agent {new.agent_id} is revoked.", hint="Let another agent in: agent-console agents list")


async def _shared(work: Work, wanted: Select[Any]) -> Row[Any] | None:
    found: Row[Any] | None = (await work.connection.execute(wanted.with_for_update(read=True))).first()
    return found


def _unwelcome_user(new: NewParticipant, user: Row[Any] | None) -> ConsoleError | None:
    if user is None:
        return NotFound(f"There is no user {new.user_id}.", hint="List them: agent-console users list")
    if user.kind != UserKind.HUMAN:
        return Conflict(f"User {new.user_id} is the system user of an agent.", hint="Let the agent in instead.")
    if not user.is_active:
        return Conflict(
            f"User {new.user_id} is deactivated.", hint="Let somebody else in: agent-console users list"
        )
    return None


@answers(THREADS_CHANGE_RIGHTS)
async def change_rights(work: Work, change: ParticipantRights) -> Participant:
    access = await locked_access(work, change.thread_id)
    access.require_share(to_take_away=True)
    before = await _participant(work, change.thread_id, change.participant_id)
    wanted = {right: _chosen(getattr(change, right), getattr(before, right)) for right in RIGHTS}
    access.require_share(to_take_away=all(getattr(before, right) >= wanted[right] for right in RIGHTS))
    _require_read_with(**wanted)
    if wanted == {right: getattr(before, right) for right in RIGHTS}:
        return before
    _require_own(access, gives_write=wanted["can_write"] and not before.can_write)
    if not wanted["can_share"]:
        await _keep_somebody_who_shares(work, before)
    await work.connection.execute(
        update(thread_participants)
        .where(
            thread_participants.c.team_id == work.caller.team_id,
            thread_participants.c.id == change.participant_id,
        )
        .values(wanted)
    )
    after = before.model_copy(update=wanted)
    await _tell(work, RIGHTS_CHANGED, after, access)
    return after


def _chosen(given: bool | None, before: bool) -> bool:
    return before if given is None else given


async def _keep_somebody_who_shares(work: Work, who: Participant) -> None:
    if work.caller.role is Role.ADMIN or not who.can_share or who.participant_type is ParticipantType.AGENT:
        return
    facts = {"team_id": work.caller.team_id, "thread_id": who.thread_id, "participant_id": who.id}
    if not (await work.connection.execute(ANOTHER_WHO_SHARES, facts)).scalar_one():
        raise Conflict(
            f"Nobody else can decide who takes part in thread {who.thread_id}.",
            hint="Give somebody else the right to share first, or ask an administrator.",
        )


@answers(THREADS_REVOKE)
async def revoke(work: Work, asked: ParticipantAsked) -> Participant:
    access = await locked_access(work, asked.thread_id)
    access.require_share(to_take_away=True)
    who = await _participant(work, asked.thread_id, asked.participant_id)
    await _keep_somebody_who_shares(work, who)
    await work.connection.execute(
        delete(thread_participants).where(
            thread_participants.c.team_id == work.caller.team_id,
            thread_participants.c.id == asked.participant_id,
        )
    )
    await _tell(work, RIGHTS_REVOKED, who, access)
    return who
