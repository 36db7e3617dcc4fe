"""The one statement that puts jobs in, each with the first line of its story."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import Row, RowMapping, text

from agent_console.database.tables import jobs
from agent_console.domain.ids import AgentId, ConnectorId, Id, JobId, LaneId, RunId
from agent_console.domain.jobs import Job, NewJob
from agent_console.repository.postgres.queue.signing import new_nonce
from agent_console.repository.postgres.work import Work

KEPT = tuple(name for name in Job.model_fields if name in jobs.c)
"""What is known of a job without looking anywhere else."""

# Whoever comes second with an idempotency key waits here for the first, and then adds nothing. Nobody has changed
# a new job yet: to name its maker there once more would be one more reference to prove for each. Its first line
# has the id of the job itself, which no other line has.
_MADE = """
    with made as (
        insert into jobs (team_id, id, lane_id, type, status, priority, payload, tool, repository, collection_id,
                          connector_id, bound_agent_id, required_capabilities, affinity_key, idempotency_key,
                          max_attempts, max_run_seconds, scheduled_for, look_at, signed, signing_nonce, run_id,
                          created_by_user_id, requested_by_user_id)
        select :team_id, g.id, g.lane_id, g.type,
               case when g.scheduled_for > now() then 'scheduled' else 'queued' end, g.priority, g.payload, g.tool,
               g.repository, g.collection_id, g.connector_id, g.bound_agent_id, g.required_capabilities,
               g.affinity_key, g.idempotency_key, g.max_attempts, g.max_run_seconds, g.scheduled_for,
               case when g.scheduled_for > now() then g.scheduled_for else '-infinity' end, g.signed,
               g.signing_nonce, g.run_id, :user_id, g.requested_by_user_id
          from jsonb_to_recordset(cast(:jobs as jsonb)) as g (
               id uuid, lane_id uuid, type text, priority integer, payload jsonb, tool text, repository text,
               collection_id uuid, connector_id uuid, bound_agent_id uuid, required_capabilities jsonb,
               affinity_key text, idempotency_key text, max_attempts integer, max_run_seconds integer,
               scheduled_for timestamptz, signed boolean, signing_nonce text, run_id uuid,
               requested_by_user_id uuid)
            on conflict (team_id, idempotency_key) where idempotency_key is not null do nothing
     returning {given}
    ), told as (
        insert into job_events (team_id, id, job_id, message, payload, created_by_user_id)
        select :team_id, id, id, 'created as ' || status, jsonb_build_object('to', status), :user_id
          from made
    )
    {answer}
"""
MANY = text(
    _MADE.format(
        given="id, status",
        answer="""
    select count(*) as made, now() as at, min(status) as status,
           case when count(*) < :expected then array_agg(id) end as ids
      from made""",
    )
)
EACH = text(_MADE.format(given=", ".join(KEPT), answer="select * from made"))


@dataclass(frozen=True)
class Route:
    lane_id: LaneId
    bound_agent_id: AgentId | None
    connector_id: ConnectorId | None


async def put_in(work: Work, rows: Sequence[dict[str, object]]) -> Row[Any]:
    """How many were made, when, and which if not all; `status` is that of the first by name."""
    return (await work.connection.execute(MANY, _facts(work, rows) | {"expected": len(rows)})).one()


async def put_in_each(work: Work, rows: Sequence[dict[str, object]]) -> dict[UUID, RowMapping]:
    """Those that were made, as they are now."""
    made = await work.connection.execute(EACH, _facts(work, rows))
    return {row["id"]: row for row in made.mappings()}


def _facts(work: Work, rows: Sequence[dict[str, object]]) -> dict[str, object]:
    return {"team_id": work.caller.team_id, "user_id": work.caller.user_id, "jobs": json.dumps(rows)}


def job_row(job: NewJob, route: Route, run_id: RunId | None = None) -> dict[str, object]:
    """What there is to say of it: what is left out is null, and costs neither words nor reading."""
    facts = {
        "id": _word(JobId.new()),
        "lane_id": _word(route.lane_id),
        "type": job.type,
        "priority": job.priority,
        "payload": job.payload,
        "tool": job.tool,
        "repository": job.repository,
        "collection_id": _word(job.collection_id),
        "connector_id": _word(route.connector_id),
        "bound_agent_id": _word(route.bound_agent_id),
        "required_capabilities": job.required_capabilities,
        "affinity_key": job.affinity_key,
        "idempotency_key": job.idempotency_key,
        "max_attempts": job.max_attempts,
        "max_run_seconds": job.max_run_seconds,
        "scheduled_for": None if job.scheduled_for is None else job.scheduled_for.isoformat(),
        "signed": job.signed,
        "signing_nonce": new_nonce() if job.signed else None,
        "run_id": _word(run_id),
        "requested_by_user_id": _word(job.requested_by_user_id),
    }
    return {name: fact for name, fact in facts.items() if fact is not None}


def _word(row: Id | None) -> str | None:
    return None if row is None else f"{row.int:032x}"
