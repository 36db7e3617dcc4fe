"""Try jobs again that ended badly: each gets a new job in its place and keeps its own history."""

from collections.abc import Collection as Many
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Table, Text, bindparam, literal, select, text
from sqlalchemy.dialects.postgresql import ARRAY, UUID

from agent_console.database.tables import agents, collections, connectors, jobs
from agent_console.domain.errors import Conflict, ConsoleError
from agent_console.domain.ids import AgentId, ConnectorId, Id, JobId, LaneId, TeamId
from agent_console.domain.job_acts import RETRYABLE
from agent_console.domain.kinds import ParentKind
from agent_console.domain.states import JobStatus
from agent_console.repository.port import Topic
from agent_console.repository.postgres.queue.job_changes import Done, JobRow, Line, Sorted, tell_stories
from agent_console.repository.postgres.queue.lanes import lane_of
from agent_console.repository.postgres.queue.release import place_of
from agent_console.repository.postgres.queue.signing import new_nonce, signing_key
from agent_console.repository.postgres.work import Work

# The payload, which may be large, never leaves the database. Served by the primary key.
COPY = text("""
    insert into jobs (team_id, id, lane_id, type, priority, payload, tool, repository, collection_id, connector_id,
                      bound_agent_id, required_capabilities, affinity_key, max_attempts, max_run_seconds, signed,
                      signing_nonce, parent_job_id, parent_kind, requested_by_user_id, created_by_user_id,
                      updated_by_user_id)
    select o.team_id, n.id, n.lane_id, o.type, o.priority, o.payload, o.tool, o.repository, o.collection_id,
           n.connector_id, n.bound_agent_id, o.required_capabilities, o.affinity_key, o.max_attempts,
           o.max_run_seconds, o.signed, n.nonce, o.id, 'retry', o.requested_by_user_id, :user_id, :user_id
      from unnest(:old_ids, :new_ids, :lane_ids, :agent_ids, :connector_ids, :nonces)
           as n (old_id, id, lane_id, bound_agent_id, connector_id, nonce)
      join jobs o on o.team_id = :team_id and o.id = n.old_id
     order by n.id
""").bindparams(
    *(
        bindparam(name, type_=ARRAY(UUID))
        for name in ("old_ids", "new_ids", "lane_ids", "agent_ids", "connector_ids")
    ),
    bindparam("nonces", type_=ARRAY(Text)),
)


@dataclass(frozen=True)
class Way:
    """Where a job goes now, which may be elsewhere than when it was made."""

    bound_agent_id: AgentId | None
    connector_id: ConnectorId | None


@dataclass(frozen=True)
class Places:
    """What the jobs refer to, as it is now and stays until the transaction ends."""

    collections: dict[Id, Any]
    connectors: dict[Id, Any]
    agents: dict[Id, Any]

    def route(self, row: JobRow) -> Way:
        """A job of a collection goes where the collection points now."""
        collection = self.collections.get(row.collection_id)
        if collection is None:
            return Way(row.bound_agent_id, row.connector_id)
        return Way(collection.bound_agent_id or row.bound_agent_id, collection.connector_id or row.connector_id)

    def why_not(self, row: JobRow) -> str | None:
        route = self.route(row)
        if row.collection_id is not None and row.collection_id not in self.collections:
            return f"its collection {row.collection_id} is deleted"
        if route.connector_id is not None and route.connector_id not in self.connectors:
            return f"its connector {route.connector_id} is deleted"
        if route.bound_agent_id is None:
            return None
        if (agent := self.agents.get(route.bound_agent_id)) is None:
            return f"the agent it is bound to, {route.bound_agent_id}, is deleted"
        return f"the agent it is bound to, {agent.name}, is revoked" if agent.revoked_at is not None else None


@dataclass(frozen=True)
class Retry:
    reason: str | None = None
    states: frozenset[JobStatus] = RETRYABLE

    def narrowed(self, team_id: TeamId, job_id: ColumnElement[Any]) -> ColumnElement[bool] | None:
        """What was retried already is not found again, so that a filter can be worked through twice.

        A look-up in jobs_parent_idx for each row; as a join the planner might read all jobs instead.
        """
        again = jobs.alias("again")
        found = (
            select(literal(1))
            .where(
                again.c.team_id == team_id,
                again.c.parent_job_id == job_id,
                again.c.parent_kind == ParentKind.RETRY.value,
            )
            .limit(1)
        )
        return found.scalar_subquery().is_(None)

    async def sort(self, work: Work, rows: Sequence[JobRow]) -> Sorted:
        found = Sorted()
        retries = await _retries_of(work, [row.id for row in rows])
        # Only of those that may be retried: their jobs have ended, and nobody who works on one waits for them.
        places = await _places(work, [row for row in rows if JobStatus(row.status) in RETRYABLE])
        for row in rows:
            if JobStatus(row.status) not in RETRYABLE:
                found.refuse(row, _wrong_state(row))
            elif row.run_id is not None:
                found.refuse(row, _of_a_run(row))
            elif (retry := retries.get(row.id)) is not None:
                found.refuse(row, _retried_already(row, retry))
            elif (problem := places.why_not(row)) is not None:
                hint = "Make a new job: agent-console jobs create"
                found.refuse(row, Conflict(f"Job {row.id} can't be retried: {problem}.", hint=hint))
            elif row.signed and (refusal := _no_key()) is not None:
                found.refuse(row, refusal)
            else:
                found.ready.append(row)
        return found

    async def do(self, work: Work, rows: Sequence[JobRow]) -> list[Done]:
        places = await _places(work, rows)
        routes = [places.route(row) for row in rows]
        lanes = await _lanes(work, rows, routes)
        made = [JobId.new() for _ in rows]
        facts = {
            "old_ids": [row.id for row in rows],
            "new_ids": made,
            "lane_ids": lanes,
            "agent_ids": [route.bound_agent_id for route in routes],
            "connector_ids": [route.connector_id for route in routes],
            "nonces": [new_nonce() if row.signed else None for row in rows],
        }
        whose = {"team_id": work.caller.team_id, "user_id": work.caller.user_id}
        await work.connection.execute(COPY, facts | whose)
        lines = [
            line
            for new_id, row in zip(made, rows, strict=True)
            for line in (
                Line(new_id, f"created as queued: {row.id} once more", {"to": "queued"}, None),
                Line(row.id, f"retried as {new_id}", {"retried_as": str(new_id)}, row.attempt),
            )
        ]
        await tell_stories(work, lines)
        for place in {place_of(lane, route.bound_agent_id) for route, lane in zip(routes, lanes, strict=True)}:
            work.announce(Topic.WORK, place)
        return [Done(new_id, {"new_job_id": str(new_id)}) for new_id in made]


async def _retries_of(work: Work, ids: Sequence[JobId]) -> dict[JobId, Any]:
    """Asked after the jobs were locked, so that of two who retry one job the second sees the first's.

    Served by jobs_parent_idx.
    """
    wanted = select(jobs.c.parent_job_id, jobs.c.id, jobs.c.status).where(
        jobs.c.team_id == work.caller.team_id,
        jobs.c.parent_job_id.in_(ids),
        jobs.c.parent_kind == ParentKind.RETRY.value,
    )
    return {row.parent_job_id: row for row in await work.connection.execute(wanted)}


async def _places(work: Work, rows: Sequence[JobRow]) -> Places:
    of_collections = await _living(
        work, collections, {row.collection_id for row in rows}, "bound_agent_id", "connector_id"
    )
    known = Places(of_collections, {}, {})
    routes = [known.route(row) for row in rows]
    return Places(
        of_collections,
        await _living(work, connectors, {route.connector_id for route in routes}),
        await _living(work, agents, {route.bound_agent_id for route in routes}, "name", "revoked_at"),
    )


async def _living(work: Work, table: Table, ids: Many[Id | None], *names: str) -> dict[Id, Any]:
    """By primary key; shared, so that nobody deletes one before the jobs refer to it; an agent works on."""
    named = sorted(id for id in ids if id is not None)
    if not named:
        return {}
    wanted = (
        select(table.c.id, *(table.c[name] for name in names))
        .where(table.c.team_id == work.caller.team_id, table.c.id.in_(named), table.c.deleted_at.is_(None))
        .order_by(table.c.id)
        .with_for_update(read=True, key_share=table is agents)
    )
    return {row.id: row for row in await work.connection.execute(wanted)}


async def _lanes(work: Work, rows: Sequence[JobRow], routes: Sequence[Way]) -> list[LaneId]:
    """Many jobs, few lanes: each is looked up once."""
    known: dict[tuple[object, ...], LaneId] = {}
    found: list[LaneId] = []
    for row, route in zip(rows, routes, strict=True):
        needs = tuple(row.required_capabilities)
        key = (route, needs, row.type, row.repository)
        if key not in known:
            known[key] = await lane_of(
                work,
                bound_agent_id=route.bound_agent_id,
                required_capabilities=needs,
                job_type=row.type,
                repository=row.repository,
                connector_id=route.connector_id,
            )
        found.append(known[key])
    return found


def _no_key() -> ConsoleError | None:
    try:
        signing_key()
    except ConsoleError as refusal:
        return refusal
    return None


def _wrong_state(row: JobRow) -> ConsoleError:
    return Conflict(
        f"Job {row.id} is {row.status}; only a failed, dead_letter or cancelled job can be retried.",
        hint="Wait for its end, or cancel it first.",
        details={"state": row.status},
    )


def _of_a_run(row: JobRow) -> ConsoleError:
    # A run that ended stays as it ended, and a new one has to pass the policy again.
    return Conflict(f"Job {row.id} belongs to a run that has ended.", hint="Ask the agent again in the thread.")


def _retried_already(row: JobRow, retry: JobRow) -> ConsoleError:
    return Conflict(
        f"Job {row.id} was retried already, as {retry.id}, which is {retry.status}.",
        hint="If that one ended badly too, retry that one.",
        details={"job_id": str(retry.id), "state": retry.status},
    )
