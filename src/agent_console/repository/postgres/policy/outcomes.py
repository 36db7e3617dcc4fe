"""What became of a delegation, for the agent that asked: a look at rows, and a wait until they have changed.

Nothing is remembered between two looks, so that neither the agent's restart nor the server's loses anything.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from time import monotonic
from typing import TYPE_CHECKING

from sqlalchemy import select

from agent_console.database.tables import approvals, runs
from agent_console.domain.delegation import Delegation, DelegationAsked
from agent_console.domain.errors import ConsoleError, Invalid, NotFound
from agent_console.domain.ids import ApprovalId, RunId, TeamId
from agent_console.repository.operations.runs import RUNS_OUTCOME
from agent_console.repository.port import Topic
from agent_console.repository.postgres.own_pace import answers_at_own_pace
from agent_console.repository.postgres.policy.approval_records import brief_of
from agent_console.repository.postgres.runs.records import run_of
from agent_console.repository.postgres.work import Work

if TYPE_CHECKING:
    from agent_console.repository.postgres.repository import PostgresRepository

# Polling finds what no notice told of: a notice can get lost, and where nobody does the duties time alone ends an
# approval.
LOOK_AGAIN_SECONDS = 5.0
CONCERNED = frozenset({Topic.RUNS, Topic.APPROVALS, Topic.JOBS})


async def delegation_of(
    work: Work, run_id: RunId | None, approval_id: ApprovalId | None, *, repeated: bool = False
) -> Delegation:
    """As it stands now. Whoever asks has been found to be the agent that asked."""
    approval = None if approval_id is None else await brief_of(work, approval_id)
    if approval is not None:
        run_id = approval.run_id
    run = None if run_id is None else await run_of(work, run_id)
    return Delegation.of(run, approval, repeated=repeated)


@answers_at_own_pace(RUNS_OUTCOME)
async def tell_outcome(repository: "PostgresRepository", asked: DelegationAsked) -> Delegation:
    found = await repository.in_one_transaction(RUNS_OUTCOME, look, asked)
    if found.mark != asked.seen or not asked.wait_seconds:
        return found
    deadline = monotonic() + asked.wait_seconds
    async with _told_of_changes(repository, found) as told:
        while True:
            told.clear()
            found = await repository.in_one_transaction(RUNS_OUTCOME, look, asked)
            left = deadline - monotonic()
            if found.mark != asked.seen or left <= 0:
                return found
            with suppress(TimeoutError):
                async with asyncio.timeout(min(left, LOOK_AGAIN_SECONDS)):
                    await told.wait()


async def look(work: Work, asked: DelegationAsked) -> Delegation:
    if (asked.run_id is None) is (asked.approval_id is None):
        raise Invalid(
            "A delegation is asked for by one of two ids.",
            hint="Give the run or the approval.",
            details={"fields": [{"field": "run_id", "problem": "or approval_id has to be given, and not both"}]},
        )
    table, asker = (runs, runs.c.requested_by_agent_id) if asked.run_id else (approvals, approvals.c.from_agent_id)
    mine = select(table.c.id).where(
        table.c.team_id == work.caller.team_id,
        table.c.id == (asked.run_id or asked.approval_id),
        asker == work.caller.agent_id,
    )
    if (await work.connection.execute(mine)).first() is None:
        raise NotFound(
            "There is no such delegation of yours.", hint="Name a run or an approval that you asked for."
        )
    return await delegation_of(work, asked.run_id, asked.approval_id)


@asynccontextmanager
async def _told_of_changes(repository: "PostgresRepository", found: Delegation) -> AsyncIterator[asyncio.Event]:
    """An event that is set whenever the delegation may have changed."""
    team_id = await repository.backend.database.within_time(_team(repository))
    told = asyncio.Event()
    hearing = asyncio.create_task(_hear(repository, team_id, _names(found), told))
    try:
        yield told
    finally:
        hearing.cancel()
        with suppress(asyncio.CancelledError):
            await hearing


def _names(found: Delegation) -> frozenset[str]:
    run, approval = found.run, found.approval
    of_run = () if run is None else (str(run.id), str(run.job_id))
    return frozenset(of_run if approval is None else (*of_run, str(approval.id)))


async def _team(repository: "PostgresRepository") -> TeamId:
    async with repository.backend.database.reading() as connection:
        return (await repository.identify(connection)).team_id


async def _hear(
    repository: "PostgresRepository", team_id: TeamId, names: frozenset[str], told: asyncio.Event
) -> None:
    with suppress(ConsoleError):
        async for change in repository.backend.listener.changes(team_id, CONCERNED):
            if change.id is None or change.id in names:
                told.set()
