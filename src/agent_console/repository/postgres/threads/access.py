"""Who may do what in a thread: asked before every reading and every writing of anything that belongs to one.

The rights are the three flags of a participant. A thread that is shared may be read by every person of the
team; an agent that is asked to act in a thread may read and write there until it has ended; an admin may do
everything, and doing so without being let in by the rights is written down. Who may not read a thread is told
that there is none.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, TextClause, or_, select, text

from agent_console.database.tables import runs, thread_participants, threads
from agent_console.domain.audit import AuditEvent, audit_action
from agent_console.domain.errors import Conflict, Forbidden, NotFound
from agent_console.domain.identity import Caller
from agent_console.domain.ids import ThreadId
from agent_console.domain.kinds import Visibility
from agent_console.domain.permissions import Role
from agent_console.repository.postgres import audit
from agent_console.repository.postgres.walked_pages import there_is
from agent_console.repository.postgres.work import Work

ADMIN_OVERRIDE = audit_action("thread.access.admin_override")

# One row tells of a visit, not of every page that is turned during it.
TOLD_ALREADY = text("""
    select exists (
        select from audit_log
         where team_id = :team_id and thread_id = :thread_id and actor_user_id = :user_id
           and action = 'thread.access.admin_override' and created_at > now() - interval '10 minutes')
""")


def _rights(of_person: bool, lock: bool) -> TextClause:
    """One statement, the same for everybody: asked before all that is done in a thread, it has to be cheap."""
    kind, whose = ("human", "user_id") if of_person else ("agent", "agent_id")
    acts_there = """exists (
               select from runs r
                where r.team_id = t.team_id and r.target_agent_id = :whose
                  and r.status in ('queued', 'running') and r.thread_id = t.id)"""
    return text(f"""
        select t.archived_at, t.visibility, now() as at,
               coalesce(p.can_read, false) as can_read,
               coalesce(p.can_write, false) as can_write,
               coalesce(p.can_share, false) as can_share,
               {"false" if of_person else acts_there} as acts_there
          from threads t
          left join thread_participants p
            on p.team_id = t.team_id and p.thread_id = t.id
           and p.participant_type = '{kind}' and p.{whose} = :whose
         where t.team_id = :team_id and t.id = :thread_id
         {"for no key update of t" if lock else ""}
    """)  # noqa: S608


RIGHTS = {(of_person, lock): _rights(of_person, lock) for of_person in (True, False) for lock in (True, False)}


@dataclass(frozen=True)
class Access:
    """What the caller may do in one thread, as it stands in this transaction."""

    thread_id: ThreadId
    at: datetime
    archived_at: datetime | None
    can_write: bool
    can_share: bool

    def require_write(self) -> None:
        self._require_open()
        if not self.can_write:
            raise Forbidden(
                f"You may read thread {self.thread_id}, but not write to it.",
                hint="Ask somebody who may share it for the right to write.",
            )

    def require_share(self, *, to_take_away: bool = False) -> None:
        """An archived thread can still be closed to somebody."""
        if not to_take_away:
            self._require_open()
        if not self.can_share:
            raise Forbidden(
                f"You may not decide who takes part in thread {self.thread_id}.",
                hint="Ask somebody who may share it.",
            )

    def _require_open(self) -> None:
        if self.archived_at is not None:
            raise Conflict(
                f"Thread {self.thread_id} is archived; nothing more is written to it.",
                hint="Begin another thread: agent-console threads create",
            )


async def thread_access(work: Work, thread_id: ThreadId, *, lock: bool = False) -> Access:
    """The caller's rights, or NotFound. With `lock`, nobody else appends to the thread until this has ended."""
    caller = work.caller
    asked = RIGHTS[caller.agent_id is None, lock]
    whose = caller.user_id if caller.agent_id is None else caller.agent_id
    facts = {"team_id": caller.team_id, "thread_id": thread_id, "whose": whose}
    found = (await work.connection.execute(asked, facts)).first()
    if found is None:
        raise _no_such_thread(thread_id)
    let_in = (
        found.can_read or found.acts_there or (caller.agent_id is None and found.visibility == Visibility.SHARED)
    )
    is_admin = caller.role is Role.ADMIN
    if not let_in and not is_admin:
        raise _no_such_thread(thread_id)
    if not let_in:
        await _tell_override(work, thread_id, found.at)
    return Access(
        thread_id=thread_id,
        at=found.at,
        archived_at=found.archived_at,
        can_write=is_admin or found.acts_there or (found.can_write and caller.role is not Role.VIEWER),
        can_share=is_admin or (found.can_share and caller.role is Role.OPERATOR),
    )


def may_read(caller: Caller, thread_id: ColumnElement[Any]) -> ColumnElement[bool]:
    """For lists that go over many threads: the caller may read the one that `thread_id` names.

    An admin's lists hold everything; a list is no visit, so it is not written down.
    """
    if caller.role is Role.ADMIN:
        return thread_id.is_not(None)
    member = takes_part(caller, thread_id)
    if caller.agent_id is not None:
        return or_(member, _acts_in(caller, thread_id))
    open_to_all = there_is(
        select(threads.c.id).where(
            threads.c.team_id == caller.team_id,
            threads.c.id == thread_id,
            threads.c.visibility == Visibility.SHARED.value,
        )
    )
    return or_(member, open_to_all)


def takes_part(caller: Caller, thread_id: ColumnElement[Any]) -> ColumnElement[bool]:
    """Whether the caller was let in by name, and may read."""
    return there_is(
        select(thread_participants.c.id).where(
            thread_participants.c.team_id == caller.team_id,
            thread_participants.c.thread_id == thread_id,
            thread_participants.c.can_read,
            _is_caller(caller),
        )
    )


def _is_caller(caller: Caller) -> ColumnElement[bool]:
    if caller.agent_id is not None:
        return (thread_participants.c.participant_type == "agent") & (
            thread_participants.c.agent_id == caller.agent_id
        )
    return (thread_participants.c.participant_type == "human") & (thread_participants.c.user_id == caller.user_id)


def _acts_in(caller: Caller, thread_id: ColumnElement[Any]) -> ColumnElement[bool]:
    return there_is(
        select(runs.c.id).where(
            runs.c.team_id == caller.team_id,
            runs.c.target_agent_id == caller.agent_id,
            runs.c.status.in_(("queued", "running")),
            runs.c.thread_id == thread_id,
        )
    )


async def _tell_override(work: Work, thread_id: ThreadId, at: datetime) -> None:
    facts = {"team_id": work.caller.team_id, "thread_id": thread_id, "user_id": work.caller.user_id}
    if (await work.connection.execute(TOLD_ALREADY, facts)).scalar_one():
        return
    event = AuditEvent(ADMIN_OVERRIDE, "thread", str(thread_id), thread_id=thread_id)
    await audit.append(work, event, at)


def _no_such_thread(thread_id: ThreadId) -> NotFound:
    return NotFound(
        f"There is no thread {thread_id} that you may read.", hint="List yours: agent-console threads list"
    )
