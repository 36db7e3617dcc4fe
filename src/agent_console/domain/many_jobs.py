"""Many jobs put into the queue at once, all of them or none."""

from pydantic import Field

from agent_console.domain.ids import JobId
from agent_console.domain.jobs import NewJob
from agent_console.domain.records import Record, Request

JOBS_AT_ONCE = 1_000


class NewJobs(Request):
    jobs: tuple[NewJob, ...] = Field(
        min_length=1, max_length=JOBS_AT_ONCE, description="The jobs, each with the fields of jobs.create."
    )


class JobsMade(Record):
    ids: tuple[JobId, ...] = Field(description="The job of each, in the order they were given.")
    made: int = Field(description="How many are new; the others were made before with the same key.")
