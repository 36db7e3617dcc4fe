"""What a program finds in its environment: the facts of its job, and no secret of ours unless it was asked for."""

import os

from agent_console.agent.job import JobContext

PREFIX = "AGENT_CONSOLE_"


def environment_of(job: JobContext, url: str, message: str | None, key: str | None) -> dict[str, str]:
    """The environment of this process without its own settings, and the facts of the job."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    facts = {
        "URL": url,
        "JOB_ID": str(job.id),
        "JOB_TYPE": job.type,
        "ATTEMPT": str(job.attempt),
        "RUN_ID": None if job.run_id is None else str(job.run_id),
        "THREAD_ID": None if job.thread is None else str(job.thread),
        "MESSAGE": message,
        "KEY": key,
    }
    trace = {} if job.traceparent is None else {"TRACEPARENT": job.traceparent}
    return inherited | trace | {PREFIX + name: value for name, value in facts.items() if value is not None}
