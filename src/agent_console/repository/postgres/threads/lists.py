"""Which threads a caller may read, a page at a time, and what is shown of them."""

from typing import Any

from sqlalchemy import ColumnElement, Select, Subquery, and_, exists, false, func, or_, select, text, true, union

from agent_console.database.tables import runs, thread_participants, threads, users
from agent_console.domain.identity import Caller
from agent_console.domain.ids import ThreadId
from agent_console.domain.permissions import Role
from agent_console.domain.threads import Thread, ThreadQuery, WhichThreads
from agent_console.repository.postgres.filter_terms import ids_of_age
from agent_console.repository.postgres.pages import position
from agent_console.repository.postgres.threads.filters import ThreadMatch, archived_are
from agent_console.repository.postgres.walked_pages import WALKED_AT_MOST

creator = users.alias("creator")
changer = users.alias("changer")
member = thread_participants.alias("member")

# Written out, so that the partial indexes are seen to fit.
PERSON = text("participant_type = 'human'")
AGENT = text("participant_type = 'agent'")
ARCHIVED = {False: text("archived_at is null"), True: text("archived_at is not null")}
SHARED = text("visibility = 'shared'")
OPEN_RUN = text("runs.ended_at is null")


def newest_threads(caller: Caller, query: ThreadQuery, match: ThreadMatch | None = None) -> Select[Any]:
    """One page of ids. Each way to be let in gives a page in the order of an index of its own; they are merged.

    With a filter it is as many ids as are looked at for one page of what matches.
    """
    limit = query.limit + 1 if match is None else WALKED_AT_MOST

    def page(ids: Select[Any], key: ColumnElement[Any]) -> Select[Any]:
        return select(going_on(query, match, ids, key).limit(limit).subquery())

    def every(archived: bool, *also: Any) -> Select[Any]:
        ids = select(threads.c.id).where(threads.c.team_id == caller.team_id, ARCHIVED[archived], *also)
        return page(ids, threads.c.id)

    def taking_part(archived: bool) -> Select[Any]:
        person = caller.agent_id is None
        who = thread_participants.c.user_id if person else thread_participants.c.agent_id
        ids = select(thread_participants.c.thread_id.label("id")).where(
            thread_participants.c.team_id == caller.team_id,
            PERSON if person else AGENT,
            who == (caller.user_id if person else caller.agent_id),
            thread_participants.c.thread_archived == (true() if archived else false()),
            thread_participants.c.can_read,
        )
        return page(ids, thread_participants.c.thread_id)

    def acting(archived: bool) -> Select[Any]:
        of_thread = and_(threads.c.team_id == runs.c.team_id, threads.c.id == runs.c.thread_id)
        ids = (
            select(runs.c.thread_id.label("id"))
            .join(threads, of_thread)
            .where(
                runs.c.team_id == caller.team_id,
                runs.c.target_agent_id == caller.agent_id,
                runs.c.status.in_(("queued", "running")),
                ARCHIVED[archived],
            )
            .distinct()
        )
        return page(ids, runs.c.thread_id)

    pages: list[Select[Any]] = []
    for archived in archived_are(query, match):
        match query.which:
            case WhichThreads.ALL if caller.role is Role.ADMIN:
                pages += [every(archived)]
            case WhichThreads.MINE:
                pages += [taking_part(archived)]
            case WhichThreads.SHARED:
                # Sharing is with the people of the team; an agent is let in by name or by a run.
                pages += [every(archived, SHARED if caller.agent_id is None else false())]
            case _ if caller.agent_id is not None:
                pages += [taking_part(archived), acting(archived)]
            case _:
                pages += [taking_part(archived), every(archived, SHARED)]
    merged = union(*pages).subquery()
    return select(merged.c.id).order_by(merged.c.id.desc()).limit(limit)


def going_on(
    query: ThreadQuery, match: ThreadMatch | None, ids: Select[Any], key: ColumnElement[Any]
) -> Select[Any]:
    """From where the page before ended, newest first; of an age only the stretch that can be of it."""
    if (after := position(query.after, ThreadId)) is not None:
        ids = ids.where(key < after)
    if match is not None:
        ids = ids.where(*ids_of_age(match.asked, key))
    return ids.order_by(key.desc())


def shown_threads(caller: Caller, ids: Subquery) -> Select[Any]:
    """Names and the caller's own rights, by key and only for the rows of one page."""
    made = and_(creator.c.team_id == threads.c.team_id, creator.c.id == threads.c.created_by_user_id)
    changed = and_(changer.c.team_id == threads.c.team_id, changer.c.id == threads.c.updated_by_user_id)
    person = caller.agent_id is None
    own = and_(
        member.c.team_id == threads.c.team_id,
        member.c.thread_id == threads.c.id,
        text("member.participant_type = 'human'" if person else "member.participant_type = 'agent'"),
        member.c.user_id == caller.user_id if person else member.c.agent_id == caller.agent_id,
    )
    is_open = threads.c.archived_at.is_(None)
    return (
        select(
            *(threads.c[name] for name in Thread.model_fields if name in threads.c),
            creator.c.full_name.label("created_by"),
            changer.c.full_name.label("updated_by"),
            and_(is_open, _may_write(caller)).label("can_write"),
            and_(is_open, _may_share(caller)).label("can_share"),
        )
        .select_from(threads.join(ids, ids.c.id == threads.c.id).join(creator, made))
        .outerjoin(changer, changed)
        .outerjoin(member, own)
        .where(threads.c.team_id == caller.team_id)
        .order_by(threads.c.id.desc())
    )


def _may_write(caller: Caller) -> ColumnElement[bool]:
    by_right = func.coalesce(member.c.can_write, false())
    match caller.role:
        case Role.ADMIN:
            return true()
        case Role.VIEWER:
            return false()
        case Role.AGENT:
            acts_there = exists(
                select(1).where(
                    runs.c.team_id == threads.c.team_id,
                    runs.c.thread_id == threads.c.id,
                    runs.c.target_agent_id == caller.agent_id,
                    OPEN_RUN,
                )
            )
            return or_(by_right, acts_there)
        case _:
            return by_right


def _may_share(caller: Caller) -> ColumnElement[bool]:
    match caller.role:
        case Role.ADMIN:
            return true()
        case Role.OPERATOR:
            return func.coalesce(member.c.can_share, false())
        case _:
            return false()
