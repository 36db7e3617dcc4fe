"""Pausing the queue: nothing new is claimed until somebody resumes it."""

from pydantic import Field

from agent_console.domain.agent_changes import Reason
from agent_console.domain.kinds import PauseMode
from agent_console.domain.records import Instant, Record, Request


class Pause(Record):
    """That the queue is paused: since when, by whom and why."""

    mode: PauseMode
    reason: str
    since: Instant
    by: str | None


class QueuePausing(Request):
    """With drain what runs may finish; with quiesce it goes back to the queue and loses no try."""

    mode: PauseMode = Field(description="What becomes of the jobs that agents hold.")
    reason: Reason = Field(description="Why; every screen and every agent is told.")


class QueuePaused(Record):
    """How the queue stands now. `released` jobs went back to the queue."""

    pause: Pause | None
    released: int = 0
