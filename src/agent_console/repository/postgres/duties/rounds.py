"""What somebody has to do while time passes, and how it goes.

Every process does all of it; an advisory lock lets one at a time through (who tends the jobs passes over those
that others hold instead), and each step is safe to repeat, so any number of servers and consoles do a duty neither
twice nor not at all.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from time import monotonic

from agent_console.repository.postgres.audit.sealing import SEAL_ACTS
from agent_console.repository.postgres.duties.approvals import END_APPROVALS
from agent_console.repository.postgres.duties.audit_months import MAKE_AUDIT_MONTHS, PRUNE_AUDIT
from agent_console.repository.postgres.duties.declared import Duty
from agent_console.repository.postgres.duties.queue import KEEP_COUNTS, PRUNE_JOBS, TEND_JOBS
from agent_console.repository.postgres.duties.records import DutyRecord, Records, Round, keep_written
from agent_console.repository.postgres.duties.rest import LET_REST
from agent_console.repository.postgres.duties.runs import END_OVERDUE_RUNS
from agent_console.repository.postgres.duties.silence import NOTICE_SILENCE
from agent_console.repository.postgres.repository import Backend

STOP_SECONDS = 2.0
# Whoever has only just come answers first what it is asked; a duty can wait for a moment.
SETTLE_SECONDS = 1.0
DUTIES: tuple[Duty, ...] = (
    NOTICE_SILENCE,
    LET_REST,
    TEND_JOBS,
    KEEP_COUNTS,
    PRUNE_JOBS,
    SEAL_ACTS,
    MAKE_AUDIT_MONTHS,
    PRUNE_AUDIT,
    END_OVERDUE_RUNS,
    END_APPROVALS,
)


async def do_round(duty: Duty, backend: Backend) -> Round:
    """Whatever goes wrong belongs into the record: the next round tries again, and nobody else is stopped."""
    began, rows, error = monotonic(), None, None
    try:
        rows = await duty.round(backend)
    except Exception as failure:
        error = f"{type(failure).__name__}: {failure}"
    return Round(datetime.now(UTC), monotonic() - began, rows, error)


async def run_duty(duty: Duty, backend: Backend, record: DutyRecord, stop: asyncio.Event) -> None:
    pause = min(SETTLE_SECONDS, duty.every_seconds)
    while not await _is_over(stop, pause):
        record.add(await do_round(duty, backend))
        pause = duty.every_seconds


async def _is_over(stop: asyncio.Event, seconds: float) -> bool:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await stop.wait()
    return stop.is_set()


@asynccontextmanager
async def duties_done(backend: Backend, duties: Sequence[Duty] = DUTIES) -> AsyncIterator[Records]:
    """The duties are done for as long as the block lasts, each at its own pace; their records are by name, and
    written into the database meanwhile."""
    records = {duty.name: DutyRecord() for duty in duties}
    stop = asyncio.Event()
    doing = [asyncio.create_task(run_duty(duty, backend, records[duty.name], stop)) for duty in duties]
    doing.append(asyncio.create_task(keep_written(backend, records, stop)))
    try:
        yield records
    finally:
        stop.set()
        await asyncio.wait(doing, timeout=STOP_SECONDS)
        for task in doing:
            task.cancel()
        await asyncio.gather(*doing, return_exceptions=True)
