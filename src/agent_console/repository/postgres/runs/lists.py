"""Lists of runs, newest first, each along the index that fits what was asked."""

from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Select, Subquery, and_, select, true, union_all

from agent_console.database.tables import runs
from agent_console.domain.identity import Caller
from agent_console.domain.ids import ThreadId
from agent_console.domain.records import Page
from agent_console.domain.runs import Run, RunFilter, RunQuery, ThreadRunQuery
from agent_console.domain.states import RunStatus
from agent_console.repository.operations.runs import RUNS_IN_THREAD, RUNS_LIST
from agent_console.repository.postgres.pages import no_such_page
from agent_console.repository.postgres.runs.filters import RunMatch, run_match
from agent_console.repository.postgres.runs.records import RUN_COLUMNS, with_names
from agent_console.repository.postgres.threads.access import may_read, thread_access
from agent_console.repository.postgres.walked_pages import WALKED_AT_MOST, kept_page, last_walked, walked
from agent_console.repository.postgres.work import Work, answers

Said = TypeVar("Said")

NO_FILTER = RunMatch()


def newest_runs(
    caller: Caller, query: RunFilter, thread_id: ThreadId | None, match: RunMatch = NO_FILTER
) -> Subquery:
    """Served by runs_thread_seq_idx, runs_target_status_idx, runs_status_idx or runs_seq_idx.

    Several states are several walks, merged: none of them passes over rows of another state.
    """
    before = _seq(query.after)
    of_team = and_(runs.c.team_id == caller.team_id, *match.stretch(caller.team_id))

    def walk(*conditions: ColumnElement[bool]) -> Select[Any]:
        wanted = select(runs.c.team_id, *RUN_COLUMNS).where(of_team, *conditions)
        if before is not None:
            wanted = wanted.where(runs.c.seq < before)
        return wanted.order_by(runs.c.seq.desc())

    if match.ids:
        return walked(walk(runs.c.id.in_(match.ids)))
    if (in_thread := thread_id or _only(match.threads)) is not None:
        return walked(walk(runs.c.thread_id == in_thread))
    target, states = query.target_agent_id or _only(match.agents.wanted), _states(query, match)
    if target is None and not states:
        return walked(walk())
    of_target = [] if target is None else [runs.c.target_agent_id == target]
    each = states or tuple(RunStatus)
    walks = [walk(runs.c.status == state.value, *of_target).limit(WALKED_AT_MOST).subquery() for state in each]
    merged = union_all(*(select(one) for one in walks)).subquery()
    return walked(select(merged).order_by(merged.c.seq.desc()))


def _only(values: tuple[Said, ...]) -> Said | None:
    return values[0] if len(values) == 1 else None


def _states(query: RunFilter, match: RunMatch) -> tuple[RunStatus, ...]:
    return tuple(dict.fromkeys(query.status or match.states))


def wanted_runs(
    caller: Caller, query: RunFilter, walk: Subquery, thread_id: ThreadId | None, match: RunMatch = NO_FILTER
) -> Select[Any]:
    def kept(rows: Subquery) -> ColumnElement[bool]:
        wanted = true() if thread_id is not None else may_read(caller, rows.c.thread_id)
        if query.status:
            wanted &= rows.c.status.in_([status.value for status in query.status])
        if query.target_agent_id is not None:
            wanted &= rows.c.target_agent_id == query.target_agent_id
        if match.ids and thread_id is not None:
            wanted &= rows.c.thread_id == thread_id
        return wanted & match.holds(caller.team_id, rows)

    return kept_page(walk, kept, _newest_first, query.limit)


def _newest_first(rows: Subquery) -> tuple[ColumnElement[Any], ...]:
    return (rows.c.seq.desc(),)


def _seq(after: str | None) -> int | None:
    if after is None:
        return None
    if not (after.isascii() and after.isdigit() and len(after) <= 18):
        raise no_such_page()
    return int(after)


@answers(RUNS_LIST)
async def list_runs(work: Work, query: RunQuery) -> Page[Run]:
    return await _page(work, query, query.thread_id, await run_match(work, query.filters, query.filter))


@answers(RUNS_IN_THREAD)
async def list_runs_of_thread(work: Work, query: ThreadRunQuery) -> Page[Run]:
    return await _page(work, query, query.thread_id, await run_match(work, query.filters, query.filter))


async def _page(work: Work, query: RunFilter, thread_id: ThreadId | None, match: RunMatch) -> Page[Run]:
    if thread_id is not None:
        await thread_access(work, thread_id)
    walk = newest_runs(work.caller, query, thread_id, match)
    wanted = with_names(wanted_runs(work.caller, query, walk, thread_id, match).subquery())
    rows = (await work.connection.execute(wanted)).mappings().all()
    shown = rows[: query.limit]
    if len(rows) > query.limit:
        end = shown[-1]
    else:
        end = await last_walked(work, walk, _newest_first)
    following = None if end is None else str(end["seq"])
    return Page[Run].model_validate({"items": [dict(row) for row in shown], "next": following})
