"""Threads: beginning one, listing those one may read, changing and ending them."""

from datetime import datetime
from typing import Any

from sqlalchemy import func, insert, select, update

from agent_console.database.tables import thread_participants, threads
from agent_console.domain.audit import AuditEvent, Facts
from agent_console.domain.errors import Conflict
from agent_console.domain.ids import ParticipantId, ThreadId
from agent_console.domain.kinds import Visibility
from agent_console.domain.records import Page, shown_time
from agent_console.domain.threads import (
    NewThread,
    Thread,
    ThreadAsked,
    ThreadChange,
    ThreadQuery,
)
from agent_console.repository.operations.threads import (
    THREAD_ARCHIVED,
    THREAD_CHANGED,
    THREAD_CREATED,
    THREADS_ARCHIVE,
    THREADS_CREATE,
    THREADS_GET,
    THREADS_LIST,
    THREADS_UPDATE,
)
from agent_console.repository.port import Topic
from agent_console.repository.postgres import audit
from agent_console.repository.postgres.pages import page_of
from agent_console.repository.postgres.policy.approval_endings import withdraw_for_thread
from agent_console.repository.postgres.threads.access import thread_access
from agent_console.repository.postgres.threads.filters import ThreadMatch, archived_are, thread_match
from agent_console.repository.postgres.threads.lists import newest_threads, shown_threads
from agent_console.repository.postgres.threads.locked_thread import locked_access
from agent_console.repository.postgres.threads.walks import matching_threads, newest_first, walked_threads
from agent_console.repository.postgres.walked_pages import last_walked
from agent_console.repository.postgres.work import Work, answers


@answers(THREADS_LIST)
async def list_threads(work: Work, query: ThreadQuery) -> Page[Thread]:
    if query.filter is not None:
        return await _filtered(work, query, await thread_match(work, query.filter))
    wanted = shown_threads(work.caller, newest_threads(work.caller, query).subquery())
    rows = (await work.connection.execute(wanted)).mappings().all()
    return page_of(Page[Thread], rows, query.limit, ThreadId)


async def _filtered(work: Work, query: ThreadQuery, match: ThreadMatch) -> Page[Thread]:
    if not archived_are(query, match):
        return Page[Thread](items=())
    walk = walked_threads(work.caller, query, match)
    wanted = shown_threads(work.caller, matching_threads(work.caller, query, match, walk).subquery())
    rows = (await work.connection.execute(wanted)).mappings().all()
    page = page_of(Page[Thread], rows, query.limit, ThreadId)
    if page.next is not None:
        return page
    end = await last_walked(work, walk, newest_first)
    return page if end is None else page.model_copy(update={"next": str(ThreadId.of(end["id"]))})


@answers(THREADS_GET)
async def get_thread(work: Work, asked: ThreadAsked) -> Thread:
    await thread_access(work, asked.thread_id)
    return await _thread(work, asked.thread_id)


async def _thread(work: Work, thread_id: ThreadId) -> Thread:
    one = select(threads.c.id).where(threads.c.team_id == work.caller.team_id, threads.c.id == thread_id)
    found = (await work.connection.execute(shown_threads(work.caller, one.subquery()))).mappings().one()
    return Thread.model_validate(dict(found))


async def _tell(work: Work, thread_id: ThreadId, action: str, facts: Facts, at: datetime) -> None:
    event = AuditEvent(action, "thread", str(thread_id), facts, thread_id=thread_id)
    await audit.append(work, event, at)
    work.announce(Topic.THREADS, thread_id)


@answers(THREADS_CREATE)
async def create_thread(work: Work, new: NewThread) -> Thread:
    thread_id, caller = ThreadId.new(), work.caller
    made = await work.connection.execute(
        insert(threads)
        .values(
            team_id=caller.team_id,
            id=thread_id,
            title=new.title,
            visibility=new.visibility.value,
            created_by_user_id=caller.user_id,
            updated_by_user_id=caller.user_id,
        )
        .returning(threads.c.created_at)
    )
    await work.connection.execute(
        insert(thread_participants).values(
            team_id=caller.team_id,
            id=ParticipantId.new(),
            thread_id=thread_id,
            participant_type="human",
            user_id=caller.user_id,
            can_read=True,
            can_write=True,
            can_share=True,
            created_by_user_id=caller.user_id,
        )
    )
    await _tell(work, thread_id, THREAD_CREATED, {"visibility": new.visibility.value}, made.scalar_one())
    return await _thread(work, thread_id)


@answers(THREADS_UPDATE)
async def update_thread(work: Work, change: ThreadChange) -> Thread:
    access = await locked_access(work, change.thread_id)
    access.require_share(to_take_away=True)
    before = await _thread(work, change.thread_id)
    wanted = change.model_dump(exclude={"thread_id"}, exclude_none=True)
    changed = {name: value for name, value in wanted.items() if value != getattr(before, name)}
    access.require_share(to_take_away=changed == {"visibility": Visibility.PRIVATE})
    if not changed:
        return before
    await _change(work, change.thread_id, **changed)
    after = await _thread(work, change.thread_id)
    facts: Facts = {"changed": ", ".join(sorted(changed)), "visibility": after.visibility.value}
    await _tell(work, change.thread_id, THREAD_CHANGED, facts, access.at)
    return after


async def _change(work: Work, thread_id: ThreadId, **values: Any) -> None:
    await work.connection.execute(
        update(threads)
        .where(threads.c.team_id == work.caller.team_id, threads.c.id == thread_id)
        .values(values | {"updated_by_user_id": work.caller.user_id, "updated_at": func.now()})
    )


@answers(THREADS_ARCHIVE)
async def archive_thread(work: Work, asked: ThreadAsked) -> Thread:
    access = await locked_access(work, asked.thread_id)
    if access.archived_at is not None:
        raise Conflict(
            f"Thread {asked.thread_id} was archived at {shown_time(access.archived_at)}.",
            hint="It can be read as before.",
            details={"archived_at": shown_time(access.archived_at)},
        )
    access.require_share()
    await _change(work, asked.thread_id, archived_at=func.now())
    await work.connection.execute(
        update(thread_participants)
        .where(
            thread_participants.c.team_id == work.caller.team_id,
            thread_participants.c.thread_id == asked.thread_id,
        )
        .values(thread_archived=True)
    )
    withdrawn = await withdraw_for_thread(work, asked.thread_id, access.at)
    await _tell(work, asked.thread_id, THREAD_ARCHIVED, {"withdrawn_approvals": withdrawn}, access.at)
    return await _thread(work, asked.thread_id)
