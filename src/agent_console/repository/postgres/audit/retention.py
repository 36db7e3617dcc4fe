"""Months that nobody has to keep any longer are dropped whole, once every act of them is sealed."""

from typing import TYPE_CHECKING, Any
from uuid import UUID

from psycopg.errors import ObjectNotInPrerequisiteState
from sqlalchemy import Row, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from agent_console.domain.audit import SYSTEM, Actor, AuditEvent, Facts
from agent_console.domain.audit_proof import Pruned, PrunedMonth, Pruning
from agent_console.domain.audit_trail import Checkpoint
from agent_console.domain.errors import Conflict
from agent_console.domain.ids import TeamId
from agent_console.repository.operations.audit_trail import AUDIT_PRUNE, AUDIT_PRUNED, PRUNE_SECONDS
from agent_console.repository.port import Topic
from agent_console.repository.postgres import audit
from agent_console.repository.postgres.own_pace import answers_at_own_pace
from agent_console.repository.postgres.work import Work

if TYPE_CHECKING:
    from agent_console.repository.postgres.repository import PostgresRepository

# Looking at every act of a month takes its time; waiting for the lock to drop it must not: everybody waits behind.
PATIENTLY = text("select set_config('statement_timeout', '600s', true), set_config('lock_timeout', '3s', true)")
# Before anything of the trail is read: whoever holds it may be about to lock the whole trail.
IN_TURN = text("select pg_advisory_xact_lock(hashtext('agent_console.audit_months'))")
PRUNE = text("select p.*, now() as at from prune_audit() as p order by p.team_id")
# The oldest first; a month's own table is open to nobody, so its acts are counted through the whole.
DUE = text("""
    select to_char(m.month, 'YYYY-MM') as month,
           (select count(*) from audit_log a
             where a.team_id = :team_id and a.created_at >= m.month at time zone 'UTC'
               and a.created_at < (m.month + interval '1 month') at time zone 'UTC') as rows
      from (select to_date(right(c.relname, 7), 'YYYY_MM')::timestamp as month
              from pg_inherits i join pg_class c on c.oid = i.inhrelid
             where i.inhparent = 'audit_log'::regclass) as m
     where (m.month + interval '1 month') at time zone 'UTC' <= audit_kept_since()
     order by m.month
""")


@answers_at_own_pace(AUDIT_PRUNE)
async def prune(repository: "PostgresRepository", asked: Pruning) -> Pruned:
    return await repository.in_one_transaction(AUDIT_PRUNE, _prune, asked, seconds=PRUNE_SECONDS)


async def _prune(work: Work, asked: Pruning) -> Pruned:
    await work.connection.execute(PATIENTLY)
    if not asked.dry_run:
        await work.connection.execute(IN_TURN)
    found = (await work.connection.execute(DUE, {"team_id": work.caller.team_id})).all()
    due = tuple(PrunedMonth(month=month.month, rows=month.rows) for month in found)
    if asked.dry_run or not due:
        return Pruned(done=0, left=len(due), months=due)
    dropped = await drop_oldest(work.connection, work.caller.team_id, audit.actor_of(work.caller, work.place))
    work.announce(Topic.AUDIT, work.caller.team_id)
    ours = next((month for month in dropped if month.team_id == work.caller.team_id), None)
    return Pruned(
        done=1,
        left=len(due) - 1,
        months=due[:1],
        checkpoint=None if ours is None else _checkpoint(ours),
        next=due[1].month if len(due) > 1 else None,
    )


async def drop_oldest(connection: AsyncConnection, team_id: TeamId | None, actor: Actor) -> list[Row[Any]]:
    """Drop the oldest month, if it is due, and write the act down for every team that had something in it.

    It is the actor's act for `team_id`, and the system's for the others.
    """
    try:
        dropped = list((await connection.execute(PRUNE)).all())
    except DBAPIError as error:
        if not isinstance(error.orig, ObjectNotInPrerequisiteState):
            raise
        raise Conflict(
            "The oldest month holds acts that are not sealed yet.", hint="Look at: agent-console audit seal-status"
        ) from error
    for month in dropped:
        event = AuditEvent(AUDIT_PRUNED, "audit_month", f"{month.month:%Y-%m}", _facts(month))
        whose = actor if month.team_id == team_id else SYSTEM
        await audit.append_for(connection, TeamId.of(month.team_id), whose, event, month.at)
    return dropped


def _facts(month: Row[Any]) -> Facts:
    """What the checkpoint says, so that nobody can put another in its place."""
    return {
        "checkpoint": str(UUID(int=month.checkpoint.int)),
        "first_position": month.first_position,
        "last_position": month.last_position,
        "last_hash": month.last_hash.hex(),
        "rows": month.rows,
    }


def _checkpoint(month: Row[Any]) -> Checkpoint:
    return Checkpoint(
        month=f"{month.month:%Y-%m}",
        first_position=month.first_position,
        last_position=month.last_position,
        last_hash=month.last_hash.hex(),
        rows=month.rows,
        created_at=month.at,
    )
