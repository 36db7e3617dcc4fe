"""Runs that people ask for: starting, reading, cancelling."""

from typing import Any

from sqlalchemy import Row, select

from agent_console.database.tables import messages, runs
from agent_console.domain.errors import Conflict, Forbidden, NotFound
from agent_console.domain.ids import AgentId, MessageId, RunId
from agent_console.domain.runs import NewRun, Run, RunAsked, RunCancelling
from agent_console.domain.states import RUN_MOVES, RunStatus, require_move
from agent_console.repository.operations.runs import RUNS_CANCEL, RUNS_GET, RUNS_START
from agent_console.repository.port import Topic
from agent_console.repository.postgres.queue.cancelling import Cancel
from agent_console.repository.postgres.queue.job_changes import jobs_named
from agent_console.repository.postgres.runs.beginning import (
    RunWanted,
    begin_run,
    key_in_use,
    new_trace,
    require_room,
)
from agent_console.repository.postgres.runs.records import readable_run, run_of
from agent_console.repository.postgres.threads.access import Access
from agent_console.repository.postgres.threads.locked_thread import locked_access
from agent_console.repository.postgres.told_refusals import answers_and_tells_refusals
from agent_console.repository.postgres.work import Work, answers


async def start_run(
    work: Work,
    access: Access,
    *,
    target_agent_id: AgentId,
    input_message_id: MessageId | None,
    idempotency_key: str | None = None,
    max_run_seconds: int | None = None,
) -> Run:
    """A person asks an agent to act in a thread, whose lock the caller holds (thread_access with `lock`).

    Raises ToldRefusal when as many runs are open there as may be: an operation that calls this is marked with
    answers_and_tells_refusals, so that the refusal is written down.
    """
    access.require_write()
    if idempotency_key is not None:
        asked = (target_agent_id, input_message_id)
        if (earlier := await _started_before(work, access, idempotency_key, asked)) is not None:
            return await run_of(work, earlier)
    await _require_message(work, access, input_message_id)
    await require_room(work, access, target_agent_id)
    run_id = await begin_run(
        work,
        access,
        RunWanted(
            target_agent_id=target_agent_id,
            input_message_id=input_message_id,
            trace_id=new_trace(),
            requested_by_user_id=work.caller.user_id,
            behind_it=work.caller.user_id,
            idempotency_key=idempotency_key,
            max_run_seconds=max_run_seconds,
        ),
    )
    return await run_of(work, run_id)


async def _started_before(
    work: Work, access: Access, key: str, asked: tuple[AgentId, MessageId | None]
) -> RunId | None:
    """The same key and the same request is the same run; the same key for something else is a mistake."""
    known = select(
        *(runs.c[name] for name in ("id", "thread_id", "requested_by_user_id")),
        *(runs.c[name] for name in ("target_agent_id", "input_message_id")),
    ).where(runs.c.team_id == work.caller.team_id, runs.c.idempotency_key == key)
    found: Row[Any] | None = (await work.connection.execute(known)).first()
    if found is None:
        return None
    same = (found.target_agent_id, found.input_message_id) == asked
    if not same or (found.thread_id, found.requested_by_user_id) != (access.thread_id, work.caller.user_id):
        raise key_in_use()
    return RunId.of(found.id)


async def _require_message(work: Work, access: Access, message_id: MessageId | None) -> None:
    """A message of another thread would show its words to who may not read them."""
    if message_id is None:
        return
    known = select(messages.c.id).where(
        messages.c.team_id == work.caller.team_id,
        messages.c.id == message_id,
        messages.c.thread_id == access.thread_id,
    )
    if (await work.connection.execute(known)).first() is None:
        raise NotFound(
            f"There is no message {message_id} in thread {access.thread_id}.",
            hint="Read the thread: agent-console messages list thr_…",
        )


@answers_and_tells_refusals(RUNS_START)
async def start(work: Work, asked: NewRun) -> Run:
    access = await locked_access(work, asked.thread_id)
    return await start_run(
        work,
        access,
        target_agent_id=asked.target_agent_id,
        input_message_id=asked.input_message_id,
        idempotency_key=asked.idempotency_key,
        max_run_seconds=asked.max_run_seconds,
    )


@answers(RUNS_GET)
async def get_run(work: Work, asked: RunAsked) -> Run:
    run, _ = await readable_run(work, asked.run_id)
    return run


@answers(RUNS_CANCEL)
async def cancel_run(work: Work, asked: RunCancelling) -> Run:
    """Through its job, whose change the database follows: it ends the run and writes run.cancel.

    What is archived can still be stopped.
    """
    run, access = await readable_run(work, asked.run_id)
    if not access.can_write:
        raise Forbidden(
            f"You may read run {run.id}, but not cancel it.",
            hint="Ask somebody who may share the thread for the right to write.",
        )
    rows = await jobs_named(work, [run.job_id], lock=True) if run.job_id is not None else []
    if not rows:
        require_move(RUN_MOVES, f"Run {run.id}", run.status, RunStatus.CANCELLED)
        raise Conflict(f"Run {run.id} has no job that could be cancelled.", hint="It ends with its deadline.")
    act = Cancel(asked.reason)
    found = await act.sort(work, rows)
    if found.refused:
        now = await run_of(work, run.id)
        require_move(RUN_MOVES, f"Run {run.id}", now.status, RunStatus.CANCELLED)
        raise found.refused[0][1]
    if found.ready:
        await act.do(work, found.ready)
        work.announce(Topic.RUNS, run.id, thread_id=run.thread_id, agent_id=run.requested_by_agent_id)
    return await run_of(work, run.id)
