"""The queue as the rules tell it, in plain Python: what every job is, and what each act makes of it."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from agent_console.domain.capabilities import unmet
from agent_console.domain.ids import AgentId, JobId

FINAL = ("succeeded", "failed", "dead_letter", "cancelled")
HELD = ("assigned", "running")
WAITING = ("queued", "scheduled")

BACKOFF = (15.0, 30.0, 60.0)
LOST_LEASE = 30.0
JITTER = 0.1


@dataclass
class ModelAgent:
    id: AgentId
    name: str
    capabilities: tuple[str, ...]
    room: int
    drained: bool = False


@dataclass
class ModelJob:
    """`deadline` is when time alone changes it: it comes due, or its lease ends. `waits`: before the next try."""

    id: JobId
    needs: tuple[str, ...]
    bound_to: AgentId | None
    priority: int
    max_attempts: int
    status: str
    claimable: bool
    attempt: int = 1
    owner: AgentId | None = None
    deadline: float | None = None
    waits: float | None = None
    cancelling: bool = False

    @property
    def place(self) -> tuple[bool, int, str]:
        return (self.bound_to is None, -self.priority, str(self.id))

    def may_be_taken_by(self, agent: ModelAgent) -> bool:
        if self.bound_to is not None:
            return self.bound_to == agent.id
        return not unmet(self.needs, agent.capabilities)

    def give(self, agent: ModelAgent, *, starts: bool) -> None:
        self.status = "running" if starts else "assigned"
        self.owner, self.claimable = agent.id, False

    def end(self, status: str) -> None:
        self.status, self.claimable, self.deadline = status, False, None

    def try_again(self, waits: float) -> None:
        """A failure or a lost lease: a cancel request or the last try ends it, else it waits."""
        if self.cancelling:
            self.end("cancelled")
        elif self.attempt >= self.max_attempts:
            self.end("dead_letter")
        else:
            self.status, self.owner, self.claimable = "queued", None, False
            self.attempt += 1
            self.waits = waits

    def put_back(self) -> None:
        """Taken from its agent without costing a try: what it still does of it is fenced off all the same."""
        if self.cancelling:
            self.end("cancelled")
        else:
            self.status, self.owner, self.claimable, self.deadline = "queued", None, True, None
            self.attempt += 1
            self.max_attempts += 1


@dataclass
class QueueModel:
    agents: dict[AgentId, ModelAgent]
    jobs: dict[JobId, ModelJob] = field(default_factory=dict)
    paused: bool = False

    def held_by(self, agent: ModelAgent) -> list[ModelJob]:
        return [job for job in self.jobs.values() if job.owner == agent.id and job.status in HELD]

    def best_for(self, agent: ModelAgent, count: int) -> list[ModelJob]:
        fitting = [job for job in self.jobs.values() if job.claimable and job.may_be_taken_by(agent)]
        return sorted(fitting, key=lambda job: job.place)[:count]

    def due(self, now: float) -> list[ModelJob]:
        return [job for job in self.jobs.values() if job.deadline is not None and job.deadline <= now]

    def tend(self, now: float) -> bool:
        """What time alone does; whether there was anything to do."""
        due = self.due(now)
        for job in due:
            if job.status in HELD:
                job.try_again(LOST_LEASE)
            else:
                job.claimable = True
            job.deadline = None
        return bool(due)

    def claim(self, agent: ModelAgent, count: int, now: float, *, starts: bool) -> tuple[list[JobId], str | None]:
        """What a claim brings, in its order, or why it brings nothing."""
        if self.paused:
            return [], "paused"
        if agent.drained:
            return [], "drained"
        taken = self._take(agent, count)
        if not taken and self.tend(now):
            taken = self._take(agent, count)
        for job in taken:
            job.give(agent, starts=starts)
        if taken:
            return [job.id for job in taken], None
        if len(self.held_by(agent)) >= agent.room:
            return [], "at_your_limit"
        waiting = any(job.claimable for job in self.jobs.values())
        return [], "nothing_for_you" if waiting else "nothing_queued"

    def _take(self, agent: ModelAgent, count: int) -> list[ModelJob]:
        return self.best_for(agent, max(0, min(count, agent.room - len(self.held_by(agent)))))

    def pass_time(self, seconds: float) -> None:
        for job in self.jobs.values():
            if job.deadline is not None:
                job.deadline -= seconds


def within_jitter(waited: float, meant: float) -> bool:
    return meant * (1 - JITTER) - 0.01 <= waited <= meant * (1 + JITTER) + 0.01


def replayed(story: Iterable[tuple[object, object]]) -> object:
    """The state that a story ends in; every line begins where the one before ended."""
    now: object = None
    for came_from, went_to in story:
        assert came_from == now, f"the story jumps from {now} to {came_from}"
        if went_to != "cancelling":
            now = went_to
    return now
