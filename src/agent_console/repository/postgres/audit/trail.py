"""The trail newest first. A page looks at a bounded number of acts, whatever is filtered, however long it is.

Where few acts match, a page may hold fewer than were asked for, or none, and still have a next one.
"""

from datetime import timedelta
from typing import Any

from sqlalchemy import Select, Subquery, func, select

from agent_console.database.tables import audit_log
from agent_console.domain.audit_trail import SHOWN_DAYS, AuditAsked, AuditQuery, AuditRow
from agent_console.domain.errors import NotFound
from agent_console.domain.identity import Caller
from agent_console.domain.records import Page
from agent_console.repository.operations.audit_trail import AUDIT_GET, AUDIT_LIST
from agent_console.repository.postgres.audit.bounds import SLACK, seq_at
from agent_console.repository.postgres.audit.rows import (
    as_row,
    led_by,
    may_see,
    other_filters,
    shown_columns,
    with_seals,
)
from agent_console.repository.postgres.database_time import transaction_time
from agent_console.repository.postgres.pages import no_such_page
from agent_console.repository.postgres.work import Work, answers

LOOKED_AT = 5_000


def window(caller: Caller, wanted: AuditQuery, low: int, high: int | None) -> Subquery:
    """The acts that are looked at, by the index of the one filter that leads, else by audit_log_seq_idx."""
    acts = select(audit_log).where(audit_log.c.team_id == caller.team_id, audit_log.c.seq >= low)
    if high is not None:
        acts = acts.where(audit_log.c.seq < high)
    acts = acts.where(*led_by(wanted))
    return acts.order_by(audit_log.c.seq.desc()).limit(LOOKED_AT).subquery("looked_at")


def newest_acts(caller: Caller, wanted: AuditQuery, looked_at: Subquery) -> Select[Any]:
    """One row more than the limit: it only says that there is a next page."""
    return (
        select(looked_at.c.team_id, *shown_columns(caller, looked_at))
        .where(*other_filters(caller, wanted, looked_at))
        .order_by(looked_at.c.seq.desc())
        .limit(wanted.limit + 1)
    )


@answers(AUDIT_LIST)
async def list_acts(work: Work, query: AuditQuery) -> Page[AuditRow]:
    wanted = await _with_default_time(work, query)
    low, high = await _bounds(work, wanted)
    looked_at = window(work.caller, wanted, low, high)
    page = with_seals(newest_acts(work.caller, wanted, looked_at))
    rows = (await work.connection.execute(page)).mappings().all()
    shown = tuple(as_row(row) for row in rows[: wanted.limit])
    if len(rows) > wanted.limit:
        return Page[AuditRow](items=shown, next=str(shown[-1].seq))
    ends = select(func.count(), func.min(looked_at.c.seq)).select_from(looked_at)
    count, last = (await work.connection.execute(ends)).one()
    return Page[AuditRow](items=shown, next=str(last) if count == LOOKED_AT else None)


async def _with_default_time(work: Work, query: AuditQuery) -> AuditQuery:
    if query.since is not None:
        return query
    until = query.until or await transaction_time(work.connection)
    return query.model_copy(update={"since": until - timedelta(days=SHOWN_DAYS)})


async def _bounds(work: Work, wanted: AuditQuery) -> tuple[int, int | None]:
    """Between which numbers the acts of the wanted time lie, and where the page before ended."""
    team_id, high = work.caller.team_id, _position(wanted.after)
    low = 0 if wanted.since is None else await seq_at(work.connection, team_id, wanted.since - SLACK)
    if high is None and wanted.until is not None:
        high = await seq_at(work.connection, team_id, wanted.until + SLACK)
    return low, high


def _position(after: str | None) -> int | None:
    if after is None:
        return None
    if not (after.isascii() and after.isdigit()) or len(after) > 18:
        raise no_such_page()
    return int(after)


@answers(AUDIT_GET)
async def get_act(work: Work, asked: AuditAsked) -> AuditRow:
    one = select(audit_log.c.team_id, *shown_columns(work.caller, audit_log)).where(
        audit_log.c.team_id == work.caller.team_id, audit_log.c.id == asked.audit_id
    )
    if (visible := may_see(work.caller, audit_log)) is not None:
        one = one.where(visible)
    found = (await work.connection.execute(with_seals(one))).mappings().first()
    if found is None:
        raise NotFound(
            f"There is no audit row {asked.audit_id} that you may see.", hint="List them: agent-console audit list"
        )
    return as_row(found)
