"""Threads by a filter: a walk along the index that leaves least, of bounded length, and what is kept of it."""

from typing import Any

from sqlalchemy import ColumnElement, Select, Subquery, and_, false, select, true

from agent_console.database.tables import thread_participants, threads
from agent_console.domain.identity import Caller
from agent_console.domain.kinds import Visibility
from agent_console.domain.threads import ThreadQuery, WhichThreads
from agent_console.repository.postgres.threads.access import may_read, takes_part
from agent_console.repository.postgres.threads.filters import ThreadMatch, archived_are, archived_is, waiting
from agent_console.repository.postgres.threads.lists import AGENT, going_on, newest_threads
from agent_console.repository.postgres.walked_pages import walked


def walked_threads(caller: Caller, query: ThreadQuery, match: ThreadMatch) -> Subquery:
    """The ids that one page looks at; where much waits in one thread, it is among them more than once."""
    team_id = caller.team_id
    if match.ids:
        named = select(threads.c.id).where(threads.c.team_id == team_id, threads.c.id.in_(match.ids))
        return walked(going_on(query, match, named, threads.c.id))
    if len(match.waits_for) == 1:
        return walked(going_on(query, match, *waiting(match.waits_for[0], team_id)))
    if len(match.agents.wanted) == 1:
        key = thread_participants.c.thread_id
        agent = thread_participants.c.agent_id == match.agents.wanted[0]
        of_agent = select(key.label("id")).where(thread_participants.c.team_id == team_id, AGENT, agent)
        return walked(going_on(query, match, of_agent, key))
    return newest_threads(caller, query, match).subquery("walked")


def newest_first(walk: Subquery) -> tuple[ColumnElement[Any], ...]:
    return (walk.c.id.desc(),)


def matching_threads(caller: Caller, query: ThreadQuery, match: ThreadMatch, walk: Subquery) -> Select[Any]:
    """One page of ids, and one more. Each is fetched by its key: a join might read all there are."""
    once = select(walk.c.id).distinct().order_by(walk.c.id.desc()).subquery("once")
    of_key = and_(threads.c.team_id == caller.team_id, threads.c.id == once.c.id)
    found = select(threads).where(of_key).limit(1).lateral("found")
    kept = and_(
        archived_is(archived_are(query, match), found.c.archived_at),
        _let_in(caller, query.which, found.c),
        match.holds(caller.team_id, found.c),
    )
    return (
        select(once.c.id)
        .select_from(once.join(found, true()))
        .where(kept)
        .order_by(once.c.id.desc())
        .limit(query.limit + 1)
    )


def _let_in(caller: Caller, which: WhichThreads, found: Any) -> ColumnElement[bool]:
    match which:
        case WhichThreads.MINE:
            return takes_part(caller, found.id)
        case WhichThreads.SHARED:
            return found.visibility == Visibility.SHARED.value if caller.agent_id is None else false()
        case _:
            return may_read(caller, found.id)
