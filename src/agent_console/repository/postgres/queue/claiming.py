"""Taking jobs and ending them: what an agent does all day."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any

from agent_console.domain.errors import ConsoleError, Internal
from agent_console.domain.ids import CollectionId, ConnectorId, Id, JobId, RunId
from agent_console.domain.states import JobStatus
from agent_console.domain.working import (
    WHY_NOTHING,
    Assignment,
    CancelAcknowledged,
    Claim,
    Claimed,
    ClaimWanted,
    Ended,
    Ending,
    JobDone,
    JobFailed,
    PauseSeen,
    WhyNothing,
)
from agent_console.repository.operations.working import CLAIMS_TAKE, JOBS_ACKNOWLEDGE, JOBS_COMPLETE, JOBS_FAIL
from agent_console.repository.postgres.acting import Acting, acting_agent
from agent_console.repository.postgres.own_pace import answers_at_own_pace
from agent_console.repository.postgres.queue.apart import complete_apart
from agent_console.repository.postgres.queue.lane_book import Routing
from agent_console.repository.postgres.queue.queue import Queue
from agent_console.repository.postgres.queue.refusing import LEASE_FIELD, refusal, require_lease, require_standing
from agent_console.repository.postgres.queue.signing import secret_hash, secret_of, signing_key
from agent_console.repository.postgres.queue.turns import Finish, Taken, Turn
from agent_console.repository.postgres.registry.credentials_at_rest import ServerKey

if TYPE_CHECKING:
    from agent_console.repository.postgres.repository import PostgresRepository

ANYTHING_WAITING = """
    select exists (select from jobs where team_id = %(team_id)s and look_at = '-infinity') as waiting
"""
KEEP_SECRET_HASH = """
    update jobs set signing_secret_hash = %(hash)s
     where team_id = %(team_id)s and id = %(job_id)s and attempt = %(attempt)s
 returning id
"""

WHY_BY_STANDING = {
    "full": WhyNothing.AT_YOUR_LIMIT,
    "drained": WhyNothing.DRAINED,
    "paused": WhyNothing.PAUSED,
}
# Waiting does not help these: only the agent itself, or its operator, can change it.
NOT_WORTH_WAITING = frozenset({WhyNothing.AT_YOUR_LIMIT, WhyNothing.DRAINED})
ASK_AGAIN = 3
NO_SERVER_KEY = "no_server_key"


@answers_at_own_pace(CLAIMS_TAKE)
async def take_jobs(repository: "PostgresRepository", claim: Claim) -> Claimed:
    acting = await acting_agent(repository, CLAIMS_TAKE.name, claim.worker_id)
    claiming = Claiming(repository.backend.queue, acting, claim)
    if not claim.wait_seconds:
        return await claiming.once()
    again = partial(acting_agent, repository, CLAIMS_TAKE.name, claim.worker_id)
    return await claiming.until(monotonic() + claim.wait_seconds, again)


class Claiming:
    """One agent's claim, from the first try to the answer."""

    def __init__(self, queue: Queue, acting: Acting, wanted: ClaimWanted, field: str = LEASE_FIELD) -> None:
        self.queue = queue
        self.acting = acting
        self.wanted = wanted
        self.field = field

    async def until(self, deadline: float, again: Callable[[], Awaitable[Acting]]) -> Claimed:
        """Whoever waits is known to those who wake before it looks, so that nothing comes in between.

        A key is proved with each turn; who came with a token is asked for again after each wait.
        """
        with self.queue.waiting.expecting(self.acting.agent_id, await self.routing()) as woken:
            while True:
                woken.told.clear()
                claimed = await self.once()
                left = deadline - monotonic()
                if claimed.jobs:
                    self.queue.waiting.pass_on(woken)
                    return claimed
                if claimed.reason in NOT_WORTH_WAITING or left <= 0 or self.queue.waiting.over:
                    return claimed
                await woken.wait(left)
                if self.acting.key_hash is None:
                    self.acting = await again()
                woken.routing = await self.routing()

    async def once(self) -> Claimed:
        return await self.answer_of(await self.take())

    async def answer_of(self, taken: Taken) -> Claimed:
        if not taken.jobs and taken.standing in ("open", "full"):
            taken = await self._look_closer(taken.standing) or taken
        jobs = await self._assignments(taken.jobs)
        while taken.jobs and not jobs:
            # None of them could be given out, and others may lie behind them.
            taken = await self.take()
            jobs = await self._assignments(taken.jobs)
        return await self._answer(taken, jobs)

    async def routing(self) -> Routing:
        known = await self.queue.known.of(self.acting)
        return known.routing(self.acting, self.wanted)

    async def take(self, finish: Finish | None = None) -> Taken:
        """One turn; again when what was known of the agent has changed meanwhile. What it finished stays."""
        lease = self.wanted.lease_seconds
        require_lease(lease, await self.queue.book.lease_max(self.acting.team_id, lease), self.field)
        ended: Taken | None = None
        for _ in range(ASK_AGAIN):
            known = await self.queue.known.of(self.acting)
            turn = Turn(
                agent_id=self.acting.agent_id,
                key_hash=self.acting.key_hash,
                finish=finish if ended is None else None,
                wants=self.wanted.count,
                lease=self.wanted.lease_seconds,
                starts=self.wanted.auto_start,
                routing=known.mark,
            )
            taken = await self.queue.turns.take(known.routing(self.acting, self.wanted), turn)
            if ended is not None:
                taken.finish, taken.finish_status = ended.finish, ended.finish_status
            if taken.standing != "stale" or taken.finish not in (None, "ok"):
                require_standing(taken)
                return taken
            ended = taken
            self.queue.known.forget(self.acting.agent_id)
        raise Internal("The capabilities of this agent change faster than it can claim.", hint="Try again.")

    async def _look_closer(self, standing: str) -> Taken | None:
        """Before anybody is told that there is nothing: what is due, and what came since the last look.

        Whoever holds all it may is helped only by a lease of its own that is over.
        """
        tended = await self.queue.tend()
        if standing == "full":
            return await self.take() if tended else None
        await self.queue.book.look(self.acting.team_id)
        # Bound jobs are in no lane of the book.
        if tended or await self.queue.book.waiting_lanes(await self.routing()):
            return await self.take()
        return None

    async def _answer(self, taken: Taken, jobs: Sequence[Assignment]) -> Claimed:
        if jobs:
            return Claimed.of_known({"jobs": tuple(jobs), "reason": None, "message": None, "pause": None})
        why = WHY_BY_STANDING.get(taken.standing)
        if why is None:
            facts = {"team_id": self.acting.team_id}
            (found,) = await self.queue.connections.rows(ANYTHING_WAITING, facts)
            why = WhyNothing.NOTHING_FOR_YOU if found.waiting else WhyNothing.NOTHING_QUEUED
        pause = PauseSeen.model_validate(taken.pause) if why is WhyNothing.PAUSED else None
        return Claimed(reason=why, message=WHY_NOTHING[why], pause=pause)

    async def _assignments(self, rows: Sequence[Any]) -> list[Assignment]:
        """Of those that can be given out. One that can't be signed goes back: nobody loses the others with it."""
        given: list[Assignment] = []
        for row in rows:
            try:
                key = signing_key() if row.signed else None
            except ConsoleError as refusal:
                await self._give_back(row, refusal)
            else:
                given.append(await self._assignment(row, key))
        return given

    async def _give_back(self, row: Any, refusal: ConsoleError) -> None:
        error = f"The server that gave it out can't sign it. {refusal}"
        finish = Finish(JobId.of(row.job_id), row.attempt, "retry", error_code=NO_SERVER_KEY, error=error)
        turn = Turn(self.acting.agent_id, self.acting.key_hash, finish)
        await self.queue.turns.take(Routing(self.acting.team_id), turn)

    async def _assignment(self, row: Any, key: ServerKey | None) -> Assignment:
        """Built without validating again: the database has kept every rule of it."""
        return Assignment.of_known(
            {
                "id": JobId.of(row.job_id),
                "type": row.type,
                "status": JobStatus(row.status),
                "priority": row.priority,
                "payload": row.payload,
                "tool": row.tool,
                "repository": row.repository,
                "collection_id": _typed(CollectionId, row.collection_id),
                "connector_id": _typed(ConnectorId, row.connector_id),
                "run_id": _typed(RunId, row.run_id),
                "required_capabilities": tuple(row.required_capabilities),
                "attempt": row.attempt,
                "max_attempts": row.max_attempts,
                "max_run_seconds": row.max_run_seconds,
                "assigned_at": row.assigned_at,
                "lease_expires_at": row.lease_expires_at,
                "signing_secret": None if key is None else await self._signing_secret(row, key),
            }
        )

    async def _signing_secret(self, row: Any, key: ServerKey) -> str:
        job_id = JobId.of(row.job_id)
        secret = secret_of(key, job_id, row.attempt, row.signing_nonce)
        facts = {"team_id": self.acting.team_id, "job_id": job_id, "attempt": row.attempt}
        await self.queue.connections.rows(KEEP_SECRET_HASH, facts | {"hash": secret_hash(secret)})
        return secret


def _typed(kind: type[Id], value: Any) -> Any:
    return None if value is None else kind.of(value)


@answers_at_own_pace(JOBS_COMPLETE)
async def complete_job(repository: "PostgresRepository", done: JobDone) -> Ended:
    return await _end(repository, JOBS_COMPLETE.name, done, Finish.of_done(done))


@answers_at_own_pace(JOBS_FAIL)
async def fail_job(repository: "PostgresRepository", failed: JobFailed) -> Ended:
    outcome = "retry" if failed.retryable else "failed"
    finish = Finish(failed.job_id, failed.attempt, outcome, error_code=failed.error_code, error=failed.error)
    return await _end(repository, JOBS_FAIL.name, failed, finish)


@answers_at_own_pace(JOBS_ACKNOWLEDGE)
async def acknowledge_cancel(repository: "PostgresRepository", said: CancelAcknowledged) -> Ended:
    finish = Finish(said.job_id, said.attempt, "cancelled", summary=said.message)
    return await _end(repository, JOBS_ACKNOWLEDGE.name, said, finish)


async def _end(repository: "PostgresRepository", operation: str, ending: Ending, finish: Finish) -> Ended:
    """End the attempt and, in the same statement where that is possible, claim the next."""
    acting = await acting_agent(repository, operation)
    queue, wanted = repository.backend.queue, ending.claim_next
    claiming = None if wanted is None else Claiming(queue, acting, wanted, f"claim_next.{LEASE_FIELD}")
    turn = Turn(acting.agent_id, acting.key_hash, finish)
    for _ in range(ASK_AGAIN):
        taken = await (claiming.take(finish) if claiming else queue.turns.take(Routing(acting.team_id), turn))
        # Somebody was changing the job in that moment: it is decided anew of the job as it is now.
        if taken.finish != "again":
            break
    require_standing(taken)
    status = taken.finish_status
    if taken.finish == "apart" and isinstance(ending, JobDone):
        status = (await complete_apart(repository, ending)).status
        if claiming is not None and not taken.jobs:
            # It held the job until just now, which may have been its last free place.
            taken = await claiming.take()
    elif taken.finish != "ok":
        raise refusal(taken.finish or "", status, finish.job_id)
    following = None if claiming is None else await claiming.answer_of(taken)
    return Ended.of_known({"job_id": finish.job_id, "status": JobStatus(status or ""), "next": following})
