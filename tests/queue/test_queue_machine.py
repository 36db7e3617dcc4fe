"""Agents, operators, time and faults in any order, in two processes, against the queue as the rules tell it."""

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule, run_state_machine_as_test

from agent_console.domain.job_acts import JobCancelling, JobReprioritising
from agent_console.domain.jobs import NewJob
from agent_console.domain.kinds import PauseMode
from agent_console.domain.pausing import QueuePausing
from agent_console.domain.records import Nothing
from agent_console.domain.working import Claim, EventLine, HeldJob, JobLines, JobProgress, JobRenewal, JobStart
from agent_console.repository.operations import JOBS_CREATE, AnyOperation
from agent_console.repository.operations.job_acts import JOBS_CANCEL, JOBS_REPRIORITISE
from agent_console.repository.operations.pausing import QUEUE_PAUSE, QUEUE_RESUME
from agent_console.repository.operations.working import (
    CLAIMS_TAKE,
    JOBS_LOG,
    JOBS_PROGRESS,
    JOBS_RENEW,
    JOBS_START,
)
from agent_console.repository.postgres.duties.queue import keep_counts, tend_jobs
from tests.queue.checked_queue import CheckedQueue
from tests.queue.lengths import EXAMPLES, PHASES, STEPS
from tests.queue.model import FINAL, HELD, WAITING, ModelJob
from tests.queue.more_agents import add_agents, new_agent
from tests.support.fleet import Fleet

NEEDS: tuple[tuple[str, ...], ...] = ((), ("gpu",), ("tool:x",), ("gpu", "tool:x"))
SKILLS: tuple[tuple[tuple[str, ...], int], ...] = (
    (("gpu", "tool:x:1.2.3"), 2),
    ((), 1),
    (("gpu",), 3),
    (("tool:x:1.2.3",), 1),
)
REPORTS: dict[str, tuple[AnyOperation, type[HeldJob], dict[str, object]]] = {
    "start": (JOBS_START, JobStart, {}),
    "renew": (JOBS_RENEW, JobRenewal, {}),
    "progress": (JOBS_PROGRESS, JobProgress, {"percentage": 5}),
    "log": (JOBS_LOG, JobLines, {"events": (EventLine(message="hello"),)}),
}
ENDINGS = ("complete", "complete", "fail", "give up", "acknowledge")

some_agent = st.integers(0, len(SKILLS) - 1)
some_process = st.integers(0, 1)
some_job = st.integers(0, 1000)
some_steps = st.integers(0, 40)
one_in_four = st.sampled_from([False, False, False, True])
# Mostly what the holder would say; now and then another agent, or an attempt that is over.
some_slip = st.sampled_from(["none", "none", "none", "another agent", "another attempt"])


@dataclass(frozen=True)
class Kind:
    """What a job asks for."""

    needs: tuple[str, ...]
    bound_to: int | None
    priority: int
    max_attempts: int
    later: bool


some_kind = st.builds(
    Kind,
    needs=st.sampled_from(((), *NEEDS)),
    bound_to=st.one_of(st.none(), st.none(), some_agent),
    priority=st.sampled_from([-1, 0, 0, 5]),
    max_attempts=st.integers(1, 3),
    later=one_in_four,
)


Step = tuple[str, dict[str, object]]


def step(name: str, **facts: st.SearchStrategy[object]) -> st.SearchStrategy[Step]:
    return st.tuples(st.just(name), st.fixed_dictionaries(facts))


claims = step(
    "claim",
    place=some_agent,
    process=some_process,
    count=st.sampled_from([1, 1, 2, 3]),
    starts=st.sampled_from([True, True, False]),
    lease=st.sampled_from([600, 3000]),
)
endings = step(
    "finish",
    place=some_job,
    process=some_process,
    slip=some_slip,
    other=some_agent,
    how=st.sampled_from(ENDINGS),
    further=st.booleans(),
)
reports = step(
    "report",
    place=some_job,
    process=some_process,
    slip=some_slip,
    other=some_agent,
    word=st.sampled_from(sorted(REPORTS)),
)
agents_do = st.one_of(claims, claims, endings, endings, reports)
operators_do = st.one_of(
    step("enqueue", kind=some_kind, process=some_process, count=st.integers(1, 4)),
    step("cancel", place=some_job, process=some_process),
    step("reprioritise", place=some_job, process=some_process, priority=st.sampled_from([-3, 0, 9])),
    step("pause", process=some_process, mode=st.sampled_from(list(PauseMode))),
    step("resume", process=some_process),
    step("drain", place=some_agent, wanted=one_in_four),
    step("learn", place=some_agent, skills=st.sampled_from([(), ("gpu",), ("tool:x:1.2.3",)])),
)
time_does = st.one_of(
    step("time_passes", seconds=st.sampled_from([5, 14, 28, 40, 70, 650, 1100, 3100])),
    step("tend", process=some_process),
    step("an_hour_passes", process=some_process),
)
nature_does = st.one_of(
    step("fold", process=some_process),
    step("everybody_claims_at_once", process=some_process),
    step("a_claim_goes_wrong", place=some_agent, process=some_process, steps=some_steps, hangs_up=st.booleans()),
    step(
        "an_ending_goes_wrong",
        place=some_job,
        process=some_process,
        steps=some_steps,
        hangs_up=st.booleans(),
        how=st.sampled_from(["complete", "fail", "give up"]),
        further=st.booleans(),
    ),
)


class QueueMachine(CheckedQueue):
    @initialize(kinds=st.lists(some_kind, min_size=5, max_size=12), process=some_process)
    def a_new_day(self, kinds: list[Kind], process: int) -> None:
        self.begin()
        for kind in kinds:
            self.enqueue(kind, process, 1)

    @rule(step=agents_do)
    def an_agent(self, step: Step) -> None:
        self.take_step(step)

    @rule(step=agents_do)
    def another_agent(self, step: Step) -> None:
        self.take_step(step)

    @rule(step=operators_do)
    def an_operator(self, step: Step) -> None:
        self.take_step(step)

    @rule(step=nature_does)
    def nature(self, step: Step) -> None:
        self.take_step(step)

    @rule(step=time_does)
    def time(self, step: Step) -> None:
        self.take_step(step)

    def take_step(self, step: Step) -> None:
        name, facts = step
        getattr(self, name)(**facts)

    def enqueue(self, kind: Kind, process: int, count: int) -> None:
        new = NewJob(
            type="work",
            payload={},
            required_capabilities=kind.needs,
            bound_agent_id=None if kind.bound_to is None else self.added[kind.bound_to].id,
            priority=kind.priority,
            max_attempts=kind.max_attempts,
            scheduled_for=datetime.now(UTC) + timedelta(seconds=1000) if kind.later else None,
        )
        for _ in range(count):
            made = self.do(self.real.operator(process).call(JOBS_CREATE, new))
            self.model.jobs[made.id] = ModelJob(
                *(made.id, made.required_capabilities, made.bound_agent_id, kind.priority, kind.max_attempts),
                status="scheduled" if kind.later else "queued",
                claimable=not kind.later,
            )
        self.changed_by(process)

    def cancel(self, place: int, process: int) -> None:
        job = self.held_job(place) if place % 2 else self.job(place)
        asked = self.real.operator(process).call(JOBS_CANCEL, JobCancelling(job_id=job.id))
        if job.status in FINAL and job.status != "cancelled":
            self.refused(asked, "conflict")
            return
        self.do(asked)
        job.cancelling = job.cancelling or job.status in (*WAITING, *HELD)
        if job.status in WAITING:
            job.end("cancelled")

    def reprioritise(self, place: int, process: int, priority: int) -> None:
        job = self.job(place)
        wanted = JobReprioritising(job_id=job.id, priority=priority)
        asked = self.real.operator(process).call(JOBS_REPRIORITISE, wanted)
        if job.status in WAITING:
            self.do(asked)
            job.priority = priority
        else:
            self.refused(asked, "conflict")

    def pause(self, process: int, mode: PauseMode) -> None:
        self.do(self.real.operator(process).call(QUEUE_PAUSE, QueuePausing(mode=mode, reason="a test")))
        self.model.paused = True
        if mode is PauseMode.QUIESCE:
            for job in self.model.jobs.values():
                if job.status in HELD:
                    job.put_back()

    def resume(self, process: int) -> None:
        self.do(self.real.operator(process).call(QUEUE_RESUME, Nothing()))
        self.model.paused = False
        self.changed_by(process)

    def drain(self, place: int, wanted: bool) -> None:
        agent = self.whom(place)
        agent.drained = wanted
        when, why = ("now()", "'a test'") if agent.drained else ("null", "null")
        self.real.rows(f"update agents set drained_at = {when}, drain_reason = {why} where id = %s", agent.id)

    def learn(self, place: int, skills: tuple[str, ...]) -> None:
        self.teach(self.whom(place), skills)

    def claim(self, place: int, process: int, count: int, starts: bool, lease: int) -> None:
        self.catch_up(process)
        began = self.real.now()
        wanted = Claim(count=count, auto_start=starts, lease_seconds=lease)
        claimed = self.do(self.real.agent(place, process).call(CLAIMS_TAKE, wanted))
        if self.came_due_since(began):
            self.adopt()
            return
        jobs, why = self.model.claim(self.whom(place), count, began, starts=starts)
        assert [job.id for job in claimed.jobs] == jobs
        assert claimed.reason == why
        assert [job.attempt for job in claimed.jobs] == [self.model.jobs[job].attempt for job in jobs]

    def report(self, place: int, process: int, slip: str, other: int, word: str) -> None:
        job = self.held_job(place)
        who, attempt, holds = self.speaker(job, slip, other)
        operation, kind, facts = REPORTS[word]
        said = kind.model_validate({"job_id": job.id, "attempt": attempt} | facts)
        asked = self.real.agent(who, process).call(operation, said)
        if not holds or job.status not in HELD:
            self.refused(asked, "conflict" if holds else "not_owner")
        else:
            self.do(asked)
            job.status = job.status if word == "renew" else "running"

    def finish(self, place: int, process: int, slip: str, other: int, how: str, further: bool) -> None:
        job = self.held_job(place)
        self.catch_up(process)
        who, attempt, holds = self.speaker(job, slip, other)
        began = self.real.now()
        asked = self.ending(job, how, who, attempt, process, further=further)
        fits = {"complete": job.status == "running", "acknowledge": job.status in HELD and job.cancelling}
        if not holds or not fits.get(how, job.status in HELD):
            self.refused(asked, "conflict" if holds else "not_owner")
            return
        ended = self.do(asked)
        if self.came_due_since(began):
            self.adopt()
            return
        self.end(job, how)
        assert ended.status == job.status
        if ended.next is None:
            assert not further
            return
        jobs, why = self.model.claim(self.whom(who), 1, began, starts=False)
        assert ([following.id for following in ended.next.jobs], ended.next.reason) == (jobs, why)

    def everybody_claims_at_once(self, process: int) -> None:
        async def together() -> None:
            asking = [
                self.real.agent(place, (process + turn) % 2).call(CLAIMS_TAKE, Claim(count=2))
                for place in range(len(self.added))
                for turn in (0, 1)
            ]
            given = [job.id for answer in await asyncio.gather(*asking) for job in answer.jobs]
            assert len(given) == len(set(given)), "two agents got the same job"

        self.do(together())
        self.adopt()

    def time_passes(self, seconds: int) -> None:
        self.real.time_passes(seconds)
        self.model.pass_time(seconds)

    def tend(self, process: int) -> None:
        began = self.real.now()
        self.do(tend_jobs(self.real.backends[process]))
        self.changed_by(process)
        if self.came_due_since(began):
            self.adopt()
        else:
            self.model.tend(began)

    def an_hour_passes(self, process: int) -> None:
        """Whoever does not renew its lease has lost it."""
        self.time_passes(3600)
        self.tend(process)

    def fold(self, process: int) -> None:
        self.do(keep_counts(self.real.backends[process]))

    def a_claim_goes_wrong(self, place: int, process: int, steps: int, hangs_up: bool) -> None:
        agent = self.real.agent(place, process)
        self.goes_wrong(lambda: agent.call(CLAIMS_TAKE, Claim()), steps, hangs_up=hangs_up)

    def an_ending_goes_wrong(
        self, place: int, process: int, steps: int, hangs_up: bool, how: str, further: bool
    ) -> None:
        job = self.held_job(place)
        who, attempt, _ = self.speaker(job, "none", 0)
        self.goes_wrong(
            lambda: self.ending(job, how, who, attempt, process, further=further), steps, hangs_up=hangs_up
        )


@pytest.mark.rule("R000-93", "R000-138", "R000-140", "R000-141", "R000-142", "R000-144", "R003-31", "R003-34")
@pytest.mark.rule("R001-15", "R001-39", "R001-40", "R001-41", "R001-42", "R001-44", "R001-45", "U001-7", "U001-14")
def test_whatever_happens_the_queue_and_its_model_tell_the_same(quiet: Fleet) -> None:
    team_id = quiet.team_id()
    added = [new_agent(team_id, f"agent-{place}", *skills) for place, skills in enumerate(SKILLS)]
    add_agents(quiet, added)

    class OfThisFleet(QueueMachine):
        def __init__(self) -> None:
            super().__init__(quiet, added)

    run_state_machine_as_test(
        OfThisFleet,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            deadline=None,
            database=None,
            phases=PHASES,
            suppress_health_check=list(HealthCheck),
        ),
    )
