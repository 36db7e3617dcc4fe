"""The real queue and the model side by side: after every step both must tell the same."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import pytest
from hypothesis.stateful import RuleBasedStateMachine, invariant

from agent_console.domain.errors import Conflict
from agent_console.domain.ids import AgentId, JobId
from agent_console.domain.states import JOB_MOVES, JobStatus
from agent_console.domain.working import CancelAcknowledged, ClaimWanted, Ended, JobDone, JobFailed
from agent_console.repository.operations.working import JOBS_ACKNOWLEDGE, JOBS_COMPLETE, JOBS_FAIL
from tests.queue.crew import EMPTY, Row
from tests.queue.model import BACKOFF, FINAL, HELD, ModelAgent, ModelJob, QueueModel, replayed, within_jitter
from tests.queue.more_agents import AddedAgent
from tests.queue.two_processes import TwoProcesses
from tests.support.fleet import Fleet

Answer = TypeVar("Answer")

AS_BEFORE = (
    "update agents set drained_at = null, drain_reason = null",
    "update teams set paused_at = null, pause_mode = null, pause_reason = null, paused_by_user_id = null",
)


class CheckedQueue(RuleBasedStateMachine):
    model: QueueModel

    def __init__(self, fleet: Fleet, added: list[AddedAgent]) -> None:
        super().__init__()
        self.team_id, self.added = fleet.team_id(), added
        self.loop = asyncio.Runner()
        self.real = TwoProcesses(fleet, added)
        self.ended: dict[JobId, object] = {}
        # Processes that have not looked since another changed something.
        self.behind: set[int] = set()

    def begin(self) -> None:
        """The same agents as ever, and nothing in the queue."""
        for statement in (EMPTY, *AS_BEFORE):
            self.real.rows(statement)
        self.model = QueueModel({a.id: ModelAgent(a.id, a.name, a.capabilities, a.room) for a in self.added})
        for agent in self.added:
            self.teach(self.model.agents[agent.id], agent.capabilities)

    def teardown(self) -> None:
        self.loop.run(self.real.close())
        self.loop.close()

    def do(self, asked: Coroutine[Any, Any, Answer]) -> Answer:
        return self.loop.run(asked)

    def refused(self, asked: Coroutine[Any, Any, object], code: str) -> None:
        with pytest.raises(Conflict) as refusal:
            self.do(asked)
        assert refusal.value.code == code

    def teach(self, agent: ModelAgent, capabilities: tuple[str, ...]) -> None:
        agent.capabilities = capabilities
        learnt = "update agent_runtime set capabilities = to_jsonb(%s::text[]) where agent_id = %s"
        self.real.rows(learnt, list(capabilities), agent.id)

    def changed_by(self, process: int) -> None:
        """The other process hears of it, or looks by itself, within half a second."""
        self.behind.add(1 - process)

    def catch_up(self, process: int) -> None:
        if process in self.behind:
            self.behind.discard(process)
            self.real.backends[process].queue.book.forget(self.team_id)

    def whom(self, place: int) -> ModelAgent:
        return self.model.agents[self.added[place].id]

    def job(self, place: int) -> ModelJob:
        jobs = list(self.model.jobs.values())
        return jobs[place % len(jobs)]

    def held_job(self, place: int) -> ModelJob:
        """Mostly one that is held; any other when nobody holds one, and now and then all the same."""
        held = [job for job in self.model.jobs.values() if job.status in HELD]
        return held[place % len(held)] if held and place % 8 else self.job(place)

    def speaker(self, job: ModelJob, slip: str, other: int) -> tuple[int, int, bool]:
        """Who speaks of the job, with which attempt, and whether it is its to speak of."""
        holder = next((place for place, agent in enumerate(self.added) if agent.id == job.owner), other)
        place = other if slip == "another agent" else holder
        attempt = job.attempt + 1 if slip == "another attempt" else job.attempt
        return place, attempt, self.added[place].id == job.owner and attempt == job.attempt

    def ending(
        self, job: ModelJob, how: str, who: int, attempt: int, process: int, *, further: bool
    ) -> Coroutine[Any, Any, Ended]:
        agent = self.real.agent(who, process)
        following = ClaimWanted(lease_seconds=600) if further else None
        if how == "complete":
            done = JobDone(job_id=job.id, attempt=attempt, result={"by": who}, claim_next=following)
            return agent.call(JOBS_COMPLETE, done)
        if how == "acknowledge":
            said = CancelAcknowledged(job_id=job.id, attempt=attempt, claim_next=following)
            return agent.call(JOBS_ACKNOWLEDGE, said)
        retryable = how == "fail"
        failed = JobFailed(job_id=job.id, attempt=attempt, error="x", retryable=retryable, claim_next=following)
        return agent.call(JOBS_FAIL, failed)

    def end(self, job: ModelJob, how: str) -> None:
        if how == "complete":
            job.end("succeeded")
        elif how == "fail":
            job.try_again(BACKOFF[job.attempt - 1])
        else:
            job.end("cancelled" if job.cancelling or how == "acknowledge" else "failed")

    def came_due_since(self, began: float) -> bool:
        """Then nobody can tell on which side of the moment the statement was."""
        ended = self.real.now()
        return any(began < (job.deadline or began) <= ended for job in self.model.jobs.values())

    def goes_wrong(self, asked: Callable[[], Awaitable[object]], steps: int, *, hangs_up: bool) -> None:
        self.do(self.real.hung_up(asked, steps) if hangs_up else self.real.leaving(asked, steps))
        self.adopt()

    def adopt(self) -> None:
        """After what can end in more than one way: whatever it was, it was a way the diagram holds."""
        self.behind.update((0, 1))
        for job_id, row in self.real.seen().items():
            job = self.model.jobs[job_id]
            status, attempt = str(row["status"]), int(str(row["attempt"]))
            assert status in _reachable(job.status), f"from {job.status} to {status}"
            assert job.attempt <= attempt <= min(job.attempt + 1, job.max_attempts)
            owner = row["agent_id"]
            job.status, job.attempt, job.waits = status, attempt, None
            job.owner = None if owner is None else AgentId(str(owner))
            job.claimable = row["claimable"] is True

    @invariant()
    def both_tell_the_same(self) -> None:
        seen = self.real.seen()
        assert set(seen) == set(self.model.jobs), "a job was lost, or came from nowhere"
        for job_id, row in seen.items():
            self._compare(self.model.jobs[job_id], row)
        for agent in self.model.agents.values():
            assert len(self.model.held_by(agent)) <= agent.room
        assert self.real.counts_are_right()

    def _compare(self, job: ModelJob, row: Row) -> None:
        meant = (job.status, job.attempt, job.owner, job.claimable, job.cancelling, job.priority)
        claimable = row["claimable"] is True
        kept = (row["status"], row["attempt"], row["agent_id"], claimable, row["cancelling"], row["priority"])
        assert kept == meant
        assert not row["looked_at_too_late"]
        story = row["story"]
        assert isinstance(story, list)
        assert replayed((line.get("from"), line["to"]) for line in story) == job.status
        if job.status in FINAL:
            assert self.ended.setdefault(job.id, row["ended"]) == row["ended"], "what has ended was changed"
        if job.waits is not None and job.status == "queued":
            assert within_jitter(float(str(row["waits"])), job.waits)
        job.waits = None
        job.deadline = None if row["deadline"] is None else float(str(row["deadline"]))
        assert (job.deadline is None) == (claimable or job.status in FINAL)
        assert (job.status in HELD) <= (job.owner is not None)


def _reachable(status: str, moves: int = 3) -> set[str]:
    found = {status}
    for _ in range(moves):
        found |= {after.value for before in found for after in JOB_MOVES[JobStatus(before)]}
    return found
