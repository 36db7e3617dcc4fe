"""Begin a run: its row and its one job, bound to the agent that is asked, in the transaction of whoever asks."""

from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import and_, func, literal, select
from sqlalchemy.dialects.postgresql import insert

from agent_console.database.tables import agents, runs
from agent_console.domain.audit import AuditEvent, Facts
from agent_console.domain.delegation import Rule, too_many_runs
from agent_console.domain.errors import Conflict, JSONValue
from agent_console.domain.ids import AgentId, MessageId, RunId, UserId
from agent_console.domain.jobs import NewJob
from agent_console.domain.kinds import Decision, ParticipantType
from agent_console.domain.runs import RUN_SECONDS
from agent_console.domain.team_settings import RUNS_PER_THREAD
from agent_console.repository.operations.runs import RUN_BLOCKED, RUN_CREATED
from agent_console.repository.port import Topic
from agent_console.repository.postgres import audit
from agent_console.repository.postgres.database_time import seconds
from agent_console.repository.postgres.queue.jobs import enqueue
from agent_console.repository.postgres.registry.agent_words import no_agent
from agent_console.repository.postgres.team_settings import setting_value
from agent_console.repository.postgres.threads.access import Access
from agent_console.repository.postgres.told_refusals import ToldRefusal
from agent_console.repository.postgres.work import Work

JOB_TYPE = "agent_run"
PAYLOAD_FORM = 1


@dataclass(frozen=True)
class RunWanted:
    """Who asks whom, and what the request is part of. Exactly one of the two requesters is given."""

    target_agent_id: AgentId
    input_message_id: MessageId | None
    trace_id: UUID
    requested_by_user_id: UserId | None = None
    requested_by_agent_id: AgentId | None = None
    behind_it: UserId | None = None
    parent_run_id: RunId | None = None
    delegation_path: tuple[AgentId, ...] = ()
    idempotency_key: str | None = None
    request_digest: str | None = None
    route_version: int | None = None
    max_run_seconds: int | None = None


def new_trace() -> UUID:
    return UUID(int=RunId.new().int)


async def open_runs(work: Work, access: Access) -> int:
    """Served by runs_open_idx. Exact, since whoever begins one holds the thread's lock."""
    unfinished = (
        select(literal(1))
        .where(
            runs.c.team_id == work.caller.team_id,
            runs.c.thread_id == access.thread_id,
            runs.c.ended_at.is_(None),
        )
        .subquery()
    )
    counted: int = (await work.connection.execute(select(func.count()).select_from(unfinished))).scalar_one()
    return counted


async def require_room(work: Work, access: Access, *targets: AgentId) -> None:
    """As many runs at once in a thread as the team allows, and no more, whoever asks and whomever."""
    most = await setting_value(work.connection, work.caller.team_id, RUNS_PER_THREAD)
    open_now = await open_runs(work, access)
    if open_now + len(targets) <= most:
        return
    words, hint = too_many_runs(open_now, most), "Wait for one to end, or cancel one."
    if len(targets) > 1:
        words = f"This asks {len(targets)} agents: {words}"
        hint = f"Ask fewer, or let an administrator raise {RUNS_PER_THREAD.name}."
    facts: Facts = {
        "rule": Rule.RUNS_PER_THREAD.value,
        "target_agent_id": str(targets[0]) if len(targets) == 1 else None,
        "open_runs": open_now,
        "limit": most,
    }
    event = AuditEvent(
        RUN_BLOCKED,
        "thread",
        str(access.thread_id),
        metadata=facts,
        decision=Decision.BLOCK,
        thread_id=access.thread_id,
    )
    told: dict[str, JSONValue] = {name: fact for name, fact in facts.items() if name != "target_agent_id"}
    raise ToldRefusal(words, event, hint=hint, details=told)


async def begin_run(work: Work, access: Access, wanted: RunWanted) -> RunId:
    """The caller holds the thread's lock and has asked whether it may be. Writes run.create."""
    target = await _able_target(work, wanted.target_agent_id)
    run_id = RunId.new()
    run_seconds = wanted.max_run_seconds or RUN_SECONDS
    by_person = wanted.requested_by_user_id is not None
    made = await work.connection.execute(
        insert(runs)
        .values(
            team_id=work.caller.team_id,
            id=run_id,
            thread_id=access.thread_id,
            requested_by_type=(ParticipantType.HUMAN if by_person else ParticipantType.AGENT).value,
            requested_by_user_id=wanted.requested_by_user_id,
            requested_by_agent_id=wanted.requested_by_agent_id,
            target_agent_id=wanted.target_agent_id,
            input_message_id=wanted.input_message_id,
            trace_id=wanted.trace_id,
            parent_run_id=wanted.parent_run_id,
            delegation_path=[str(agent_id) for agent_id in wanted.delegation_path],
            idempotency_key=wanted.idempotency_key,
            request_digest=wanted.request_digest,
            route_version=wanted.route_version,
            deadline_at=func.now() + seconds(run_seconds),
        )
        .on_conflict_do_nothing(
            index_elements=["team_id", "idempotency_key"], index_where=runs.c.idempotency_key.is_not(None)
        )
        .returning(runs.c.id)
    )
    if made.first() is None:
        raise key_in_use()
    job = NewJob(
        type=JOB_TYPE,
        payload={
            "form": PAYLOAD_FORM,
            "run_id": str(run_id),
            "thread_id": str(access.thread_id),
            "input_message_id": _word(wanted.input_message_id),
            "trace_id": str(wanted.trace_id),
            "parent_run_id": _word(wanted.parent_run_id),
            "delegation_path": [str(agent_id) for agent_id in wanted.delegation_path],
            "requested_by": _word(wanted.requested_by_user_id or wanted.requested_by_agent_id),
            "connector_ref": target,
        },
        bound_agent_id=wanted.target_agent_id,
        max_run_seconds=run_seconds,
        requested_by_user_id=wanted.behind_it,
    )
    enqueued = await enqueue(work, job, run_id)
    if enqueued is None:
        raise key_in_use()
    event = AuditEvent(
        RUN_CREATED,
        "run",
        str(run_id),
        metadata={
            "target_agent_id": str(wanted.target_agent_id),
            "job_id": str(enqueued.id),
            "trace_id": str(wanted.trace_id),
            "parent_run_id": _word(wanted.parent_run_id),
            "route_version": wanted.route_version,
        },
        thread_id=access.thread_id,
        run_id=run_id,
    )
    await audit.append(work, event, access.at)
    work.announce(Topic.RUNS, run_id, thread_id=access.thread_id, agent_id=wanted.requested_by_agent_id)
    return run_id


async def _able_target(work: Work, agent_id: AgentId) -> str:
    """Its routing hint as it is now. Held, so that it is not deleted before the run is there."""
    living = and_(agents.c.team_id == work.caller.team_id, agents.c.id == agent_id, agents.c.deleted_at.is_(None))
    wanted = select(agents.c.connector_ref, agents.c.revoked_at).where(living)
    wanted = wanted.with_for_update(read=True, key_share=True)
    found = (await work.connection.execute(wanted)).first()
    if found is None:
        raise no_agent(agent_id)
    if found.revoked_at is not None:
        raise Conflict(
            f"Agent {agent_id} is revoked and can't be asked.", hint="Ask another one: agent-console agents list"
        )
    return str(found.connector_ref)


def key_in_use() -> Conflict:
    return Conflict("This idempotency key was used for another request.", hint="Use a new key for new work.")


def _word(value: MessageId | RunId | UserId | AgentId | None) -> str | None:
    return None if value is None else str(value)
