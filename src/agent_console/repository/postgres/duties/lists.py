"""How the duties go, as the processes that do them have written it down."""

from typing import Any

from sqlalchemy import Row, func, select

from agent_console.database.tables import duty_rounds
from agent_console.domain.duties import DUTY_RULES, DutyRule, DutyState
from agent_console.domain.records import Nothing, Page
from agent_console.repository.operations.duties import DUTIES_LIST
from agent_console.repository.postgres.work import Work, answers

# One row for each duty there is: by the database's clock, whichever process wrote it.
STANDING = select(
    duty_rounds,
    func.extract("epoch", func.now() - duty_rounds.c.done_at).label("done_seconds_ago"),
)


@answers(DUTIES_LIST)
async def list_duties(work: Work, request: Nothing) -> Page[DutyState]:
    rows = {row.duty: row for row in await work.connection.execute(STANDING)}
    return Page[DutyState](items=tuple(_shown(rule, rows.get(rule.name)) for rule in DUTY_RULES))


def _shown(rule: DutyRule, row: Row[Any] | None) -> DutyState:
    ago = None if row is None or row.done_seconds_ago is None else max(0.0, float(row.done_seconds_ago))
    return DutyState(
        name=rule.name,
        does=rule.does,
        every_seconds=rule.every_seconds,
        late=ago is None or ago > rule.late_after_seconds,
        failing=row is not None and row.failed_at is not None and (not row.done_at or row.failed_at > row.done_at),
        done_at=None if row is None else row.done_at,
        done_seconds_ago=ago,
        done_by=None if row is None else row.done_by,
        seconds=None if row is None else row.seconds,
        rounds=0 if row is None else row.rounds,
        rows=0 if row is None else row.rows,
        failures=0 if row is None else row.failures,
        failed_at=None if row is None else row.failed_at,
        error=None if row is None else row.error,
    )
