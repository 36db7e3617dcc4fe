"""Lists of approvals: what waits, the next to expire first; what was decided, the newest first."""

from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, Subquery, func, select, tuple_

from agent_console.database.tables import approvals
from agent_console.domain.approvals import (
    Approval,
    ApprovalAsked,
    ApprovalHistoryQuery,
    ApprovalListed,
    ApprovalQuery,
)
from agent_console.domain.errors import ConsoleError, NotFound
from agent_console.domain.identity import Caller
from agent_console.domain.ids import ApprovalId
from agent_console.domain.records import Page
from agent_console.domain.states import ApprovalState
from agent_console.repository.operations.approvals import APPROVALS_GET, APPROVALS_HISTORY, APPROVALS_LIST
from agent_console.repository.postgres.database_time import seconds
from agent_console.repository.postgres.filter_terms import AGE
from agent_console.repository.postgres.pages import no_such_page
from agent_console.repository.postgres.policy.approval_filters import ApprovalMatch, approval_match
from agent_console.repository.postgres.policy.approval_records import LISTED, approval_of, no_approval, with_names
from agent_console.repository.postgres.threads.access import may_read, thread_access
from agent_console.repository.postgres.walked_pages import kept_page, last_walked, walked
from agent_console.repository.postgres.work import Work, answers

Query = ApprovalQuery | ApprovalHistoryQuery


NO_FILTER = ApprovalMatch()


def waiting(caller: Caller, after: str | None, match: ApprovalMatch = NO_FILTER) -> Subquery:
    """Served by approvals_pending_idx. What has expired waits no longer, whether or not it was written down."""
    wanted = select(approvals.c.team_id, *LISTED).where(
        approvals.c.team_id == caller.team_id,
        approvals.c.state == ApprovalState.PENDING.value,
        approvals.c.expires_at > func.now(),
        *_named(match),
    )
    if after is not None:
        wanted = wanted.where(tuple_(approvals.c.expires_at, approvals.c.id) > _place(after))
    return walked(wanted.order_by(approvals.c.expires_at, approvals.c.id))


def decided(caller: Caller, after: str | None, match: ApprovalMatch = NO_FILTER) -> Subquery:
    """Served by approvals_decided_idx. What was asked for after a moment was decided after it too."""
    wanted = select(approvals.c.team_id, *LISTED).where(
        approvals.c.team_id == caller.team_id,
        approvals.c.state != ApprovalState.PENDING.value,
        *_named(match),
    )
    if (age := match.asked.younger_than(AGE)) is not None:
        wanted = wanted.where(approvals.c.decided_at > func.now() - seconds(age))
    if after is not None:
        wanted = wanted.where(tuple_(approvals.c.decided_at, approvals.c.id) < _place(after))
    return walked(wanted.order_by(approvals.c.decided_at.desc(), approvals.c.id.desc()))


def _named(match: ApprovalMatch) -> list[ColumnElement[bool]]:
    return [approvals.c.id.in_(match.ids)] if match.ids else []


def first_to_expire(rows: Subquery) -> tuple[ColumnElement[Any], ...]:
    return rows.c.expires_at, rows.c.id


def last_decided(rows: Subquery) -> tuple[ColumnElement[Any], ...]:
    return rows.c.decided_at.desc(), rows.c.id.desc()


def wanted_approvals(
    caller: Caller, query: Query, walk: Subquery, match: ApprovalMatch = NO_FILTER, *, waits: bool
) -> Select[Any]:
    def kept(rows: Subquery) -> ColumnElement[bool]:
        wanted = may_read(caller, rows.c.thread_id)
        if caller.agent_id is not None:
            wanted &= rows.c.from_agent_id == caller.agent_id
        if isinstance(query, ApprovalQuery):
            wanted &= rows.c.state == query.state.value
        for name in ("thread_id", "from_agent_id", "to_agent_id"):
            if (value := getattr(query, name)) is not None:
                wanted &= rows.c[name] == value
        return wanted & match.holds(caller.team_id, rows)

    return kept_page(walk, kept, first_to_expire if waits else last_decided, query.limit)


def _place(after: str) -> Any:
    """A time and an id, as `next` gave them."""
    moment, _, last = after.partition("/")
    try:
        at, approval_id = datetime.fromisoformat(moment), ApprovalId.parse(last)
    except (ValueError, ConsoleError) as error:
        raise no_such_page() from error
    if at.tzinfo is None:
        raise no_such_page()
    return tuple_(at, approval_id)


@answers(APPROVALS_LIST)
async def list_approvals(work: Work, query: ApprovalQuery) -> Page[ApprovalListed]:
    return await _page(work, query, waits=query.state is ApprovalState.PENDING)


@answers(APPROVALS_HISTORY)
async def list_decided(work: Work, query: ApprovalHistoryQuery) -> Page[ApprovalListed]:
    return await _page(work, query, waits=False)


async def _page(work: Work, query: Query, *, waits: bool) -> Page[ApprovalListed]:
    if query.thread_id is not None:
        await thread_access(work, query.thread_id)
    match = await approval_match(work, query.filter, _listed(query))
    walk = (waiting if waits else decided)(work.caller, query.after, match)
    order = first_to_expire if waits else last_decided
    page = wanted_approvals(work.caller, query, walk, match, waits=waits).subquery()
    rows = (await work.connection.execute(with_names(page, *order(page)))).mappings().all()
    shown = rows[: query.limit]
    end = shown[-1] if len(rows) > query.limit else await last_walked(work, walk, order)
    following = None
    if end is not None:
        following = f"{end['expires_at' if waits else 'decided_at'].isoformat()}/{ApprovalId.of(end['id'])}"
    return Page[ApprovalListed].model_validate({"items": [dict(row) for row in shown], "next": following})


def _listed(query: Query) -> frozenset[ApprovalState]:
    if isinstance(query, ApprovalQuery):
        return frozenset({query.state})
    return frozenset(ApprovalState) - {ApprovalState.PENDING}


@answers(APPROVALS_GET)
async def get_approval(work: Work, asked: ApprovalAsked) -> Approval:
    await require_readable(work, asked.approval_id)
    return await approval_of(work, asked.approval_id)


async def require_readable(work: Work, approval_id: ApprovalId) -> None:
    """One in a thread that the caller may not read is as if there were none; agents are told of their own."""
    wanted = select(approvals.c.thread_id, approvals.c.from_agent_id).where(
        approvals.c.team_id == work.caller.team_id, approvals.c.id == approval_id
    )
    found = (await work.connection.execute(wanted)).first()
    if found is None or work.caller.agent_id not in (None, found.from_agent_id):
        raise no_approval(approval_id)
    try:
        await thread_access(work, found.thread_id)
    except NotFound as unreadable:
        raise no_approval(approval_id) from unreadable
