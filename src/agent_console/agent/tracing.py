"""A span for every job that an agent works, in the trace of its run."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from time import time_ns
from typing import TypeAlias

from agent_console.agent.job import JobContext
from agent_console.agent.outcome import Handler, JobFailure, Returned
from agent_console.tracing import Traces, Work, traces_of

Traced: TypeAlias = Callable[[Handler], Handler]


def untraced(handler: Handler) -> Handler:
    return handler


@asynccontextmanager
async def job_spans() -> AsyncIterator[Traced]:
    """What makes a handler tell of each of its jobs; the same handler when there is no collector."""
    traces = traces_of("agent-console-agent")
    if traces is None:
        yield untraced
        return
    try:
        yield lambda handler: _traced(handler, traces)
    finally:
        await asyncio.to_thread(traces.close)


def _traced(handler: Handler, traces: Traces) -> Handler:
    async def handled(job: JobContext) -> Returned:
        began, failure = time_ns(), None
        try:
            return await handler(job)
        except JobFailure as failed:
            failure = failed.code or "failed"
            raise
        except BaseException as error:
            failure = type(error).__name__
            raise
        finally:
            traces.tell(Work(f"job {job.type}", began, job.traceparent, _facts(job), failure), by_server=False)

    return handled


def _facts(job: JobContext) -> dict[str, str | int]:
    facts: dict[str, str | int] = {"agent_console.job_id": str(job.id), "agent_console.attempt": job.attempt}
    return facts if job.run_id is None else facts | {"agent_console.run_id": str(job.run_id)}
