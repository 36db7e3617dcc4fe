"""The duties of the trail's months: to make those ahead, and to drop those that no team keeps any longer."""

from sqlalchemy import text

from agent_console.domain.audit import SYSTEM
from agent_console.domain.duties import AUDIT_AHEAD, AUDIT_MONTHS
from agent_console.repository.operations.audit_trail import PRUNE_SECONDS
from agent_console.repository.postgres.audit.retention import PATIENTLY, drop_oldest
from agent_console.repository.postgres.duties.declared import Duty, in_turn
from agent_console.repository.postgres.repository import Backend

SEALS_AT_ONCE = 5_000
BATCHES_IN_A_ROUND = 200

MONTHS_AHEAD = text("select make_audit_months()")
PRUNE_SEALS = text("select prune_audit_seals(:at_most)")


async def make_audit_months(backend: Backend) -> int | None:
    return await backend.database.within_time(_make_months(backend))


async def _make_months(backend: Backend) -> int | None:
    """How many were missing."""
    async with in_turn(backend, AUDIT_AHEAD.name) as connection:
        return None if connection is None else int((await connection.execute(MONTHS_AHEAD)).scalar_one())


async def prune_audit(backend: Backend) -> int | None:
    pruned = 0
    while months := await backend.database.within_time(_drop_month(backend), PRUNE_SECONDS):
        pruned += months
    if months is None:
        return pruned or None
    for _ in range(BATCHES_IN_A_ROUND):
        seals = await backend.database.within_time(_drop_seals(backend))
        if seals is None:
            return pruned or None
        pruned += seals
        if seals < SEALS_AT_ONCE:
            break
    return pruned


async def _drop_month(backend: Backend) -> int | None:
    """How many teams had something in it."""
    async with in_turn(backend, AUDIT_MONTHS.name) as connection:
        if connection is None:
            return None
        await connection.execute(PATIENTLY)
        return len(await drop_oldest(connection, None, SYSTEM))


async def _drop_seals(backend: Backend) -> int | None:
    async with in_turn(backend, AUDIT_MONTHS.name) as connection:
        if connection is None:
            return None
        return int((await connection.execute(PRUNE_SEALS, {"at_most": SEALS_AT_ONCE})).scalar_one())


MAKE_AUDIT_MONTHS = Duty.of(AUDIT_AHEAD, make_audit_months)
PRUNE_AUDIT = Duty.of(AUDIT_MONTHS, prune_audit)
