"""The trail in the order of its seals, for who follows it and for who takes it away.

A position once passed is never filled later, so a reader that goes on after the last one misses nothing, however
late anybody commits.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from sqlalchemy import Select, and_, func, select

from agent_console.database.tables import audit_heads, audit_log, audit_seals
from agent_console.domain.audit_export import AuditExport, ExportForm, ExportPart, as_csv, as_lines
from agent_console.domain.audit_trail import AuditFilter, AuditTail, AuditTailPage
from agent_console.domain.identity import Caller
from agent_console.repository.operations.audit_trail import AUDIT_EXPORT, AUDIT_TAIL
from agent_console.repository.port import REFETCH, Change, Topic
from agent_console.repository.postgres.audit.bounds import SLACK, position_at
from agent_console.repository.postgres.audit.rows import as_row, other_filters, shown_columns
from agent_console.repository.postgres.own_pace import answers_at_own_pace
from agent_console.repository.postgres.work import Work, answers

if TYPE_CHECKING:
    from agent_console.repository.postgres.repository import PostgresRepository

LOOKED_AT = 5_000
# A word that got lost costs this much.
LOOK_AGAIN_SECONDS = 2.0


def sealed_acts(caller: Caller, wanted: AuditFilter, after: int, upto: int, limit: int) -> Select[Any]:
    """The seals by their primary key, and for each its act by its own."""
    act = audit_log.alias("act")
    its_act = and_(
        act.c.team_id == audit_seals.c.team_id,
        act.c.id == audit_seals.c.audit_id,
        act.c.created_at == audit_seals.c.audit_created_at,
    )
    return (
        select(
            *shown_columns(caller, act),
            audit_seals.c.position,
            func.encode(audit_seals.c.hash, "hex").label("seal"),
        )
        .select_from(audit_seals.join(act, its_act))
        .where(
            audit_seals.c.team_id == caller.team_id,
            audit_seals.c.position > after,
            audit_seals.c.position <= upto,
            *other_filters(caller, wanted, act),
        )
        .order_by(audit_seals.c.position)
        .limit(limit)
    )


async def _part(work: Work, wanted: AuditTail) -> AuditTailPage:
    end = select(audit_heads.c.position).where(audit_heads.c.team_id == work.caller.team_id)
    head = int((await work.connection.execute(end)).scalar() or 0)
    after = await _start(work, wanted, head)
    upto = min(after + LOOKED_AT, head)
    acts = sealed_acts(work.caller, wanted, after, upto, wanted.limit)
    items = tuple(as_row(row) for row in (await work.connection.execute(acts)).mappings())
    position = items[-1].position if len(items) == wanted.limit else None
    reached = max(after, upto) if position is None else position
    return AuditTailPage(items=items, position=reached, head=head, next=str(reached) if reached < head else None)


async def _start(work: Work, wanted: AuditTail, head: int) -> int:
    if wanted.after_position is not None and (wanted.since is None or wanted.after_position > 0):
        return wanted.after_position
    if wanted.since is not None:
        return await position_at(work.connection, work.caller.team_id, wanted.since - SLACK) - 1
    return max(head - wanted.limit, 0)


@answers_at_own_pace(AUDIT_TAIL)
async def follow(repository: "PostgresRepository", wanted: AuditTail) -> AuditTailPage:
    """What there is, or what comes within the time that the caller wants to wait."""
    clock = asyncio.get_running_loop().time
    until = clock() + wanted.wait_seconds
    page = await repository.in_one_transaction(AUDIT_TAIL, _part, wanted)
    if page.items or not wanted.wait_seconds:
        return page
    async with aclosing(repository.changes()) as changes:
        coming: asyncio.Future[Change] = asyncio.ensure_future(anext(changes))
        try:
            while not page.items and clock() < until:
                wanted = wanted.model_copy(update={"after_position": page.position})
                if page.position >= page.head:
                    coming = await _something(changes, coming, min(until - clock(), LOOK_AGAIN_SECONDS))
                page = await repository.in_one_transaction(AUDIT_TAIL, _part, wanted)
        finally:
            coming.cancel()
            await asyncio.wait({coming})
    return page


async def _something(
    changes: AsyncGenerator[Change, None], coming: "asyncio.Future[Change]", seconds: float
) -> "asyncio.Future[Change]":
    """Wait until something was sealed, or for so long; answers with the next word that is still to come."""
    clock = asyncio.get_running_loop().time
    until = clock() + seconds
    try:
        while clock() < until:
            done, _ = await asyncio.wait({coming}, timeout=until - clock())
            if not done:
                break
            change = coming.result()
            coming = asyncio.ensure_future(anext(changes))
            if change.topic is Topic.AUDIT or change == REFETCH:
                break
    except BaseException:
        # The caller knows only the word it brought, and nobody may close the changes while another is coming.
        coming.cancel()
        await asyncio.wait({coming})
        raise
    return coming


@answers(AUDIT_EXPORT)
async def export(work: Work, wanted: AuditExport) -> ExportPart:
    filters = wanted.model_dump(exclude={"format"})
    page = await _part(work, AuditTail.model_validate(filters))
    if wanted.format is ExportForm.CSV:
        text = as_csv(page.items, header=wanted.after_position == 0)
    else:
        text = as_lines(page.items)
    return ExportPart(text=text, rows=len(page.items), position=page.position, next=page.next)
