"""The duty to drop months of the trail that no team keeps any longer, and the seals that nothing is left of."""

from sqlalchemy import text

from agent_console.domain.audit import SYSTEM
from agent_console.repository.operations.audit_trail import PRUNE_SECONDS
from agent_console.repository.postgres.audit_retention import PATIENTLY, drop_oldest
from agent_console.repository.postgres.duty_declared import Duty, in_turn
from agent_console.repository.postgres.repository import Backend

NAME = "audit_months"
EVERY_SECONDS = 3600.0
SEALS_AT_ONCE = 5_000
BATCHES_IN_A_ROUND = 200

PRUNE_SEALS = text("select prune_audit_seals(:at_most)")


async def prune_audit(backend: Backend) -> int:
    pruned = 0
    while months := await backend.database.within_time(_drop_month(backend), PRUNE_SECONDS):
        pruned += months
    for _ in range(BATCHES_IN_A_ROUND):
        seals = await backend.database.within_time(_drop_seals(backend))
        pruned += seals
        if seals < SEALS_AT_ONCE:
            break
    return pruned


async def _drop_month(backend: Backend) -> int:
    """How many teams had something in it."""
    async with in_turn(backend, NAME) as connection:
        if connection is None:
            return 0
        await connection.execute(PATIENTLY)
        return len(await drop_oldest(connection, None, SYSTEM))


async def _drop_seals(backend: Backend) -> int:
    async with in_turn(backend, NAME) as connection:
        if connection is None:
            return 0
        return int((await connection.execute(PRUNE_SEALS, {"at_most": SEALS_AT_ONCE})).scalar_one())


PRUNE_AUDIT = Duty(NAME, EVERY_SECONDS, prune_audit)
