"""How the queue goes, read from the counters that every statement on jobs keeps."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row, TextClause, text
from sqlalchemy.ext.asyncio import AsyncConnection

from agent_console.domain.ids import AgentId, ConnectorId, Id, LaneId, TeamId
from agent_console.domain.lane_words import lane_words
from agent_console.domain.lanes import Lane
from agent_console.domain.queue_stats import (
    LANES_SHOWN,
    TYPES_SHOWN,
    LaneCount,
    QueueStats,
    QueueTotals,
    StatusCount,
    TypeCount,
)
from agent_console.domain.records import Nothing
from agent_console.domain.states import JobStatus
from agent_console.domain.why_waiting import MANY_LANES, many_lanes_words, old_transaction_words
from agent_console.repository.operations.explaining import QUEUE_STATS
from agent_console.repository.postgres.old_transactions import oldest_transaction
from agent_console.repository.postgres.work import Work, answers

_WAITING = ("queued", "scheduled")
_HELD = ("assigned", "running")

# What was folded and what was not yet, in one snapshot: together they are exact. A duty folds the moves often, so
# there are few of them and they need no index.
COUNTED = """
    moves as materialized (
        select lane_id, came_from, went_to, sum(jobs) as jobs, sum(waited_seconds) as waited_seconds
          from queue_moves
         where team_id = :team_id
         group by lane_id, came_from, went_to
    ), counts as materialized (
        select lane_id, status, sum(jobs)::bigint as jobs
          from (select lane_id, status, jobs from queue_counts where team_id = :team_id
                union all
                select lane_id, went_to, jobs from moves where lane_id is not null and went_to is not null
                union all
                select lane_id, came_from, -jobs from moves
                 where lane_id is not null and came_from is not null) as kept
         group by lane_id, status
    )
"""

DEPTHS = text(f"""
    with {COUNTED}
    select status, sum(jobs)::bigint as jobs from counts group by status
""")  # noqa: S608

LANES = text(f"""
    select count(*)
      from (select from lanes where team_id = :team_id and bound_agent_id is null limit {MANY_LANES + 1}) as l
""")  # noqa: S608

# Of the lanes of one agent, by lanes_bound_idx, or of one connector: there are few lanes, however many jobs.
IN_LANES = """
    with of_it as materialized (
        select id from lanes where team_id = :team_id and {column} = :id
    )
    select coalesce(sum(jobs), 0)::bigint
      from (select c.jobs
              from of_it l
             cross join lateral (
                   select jobs from queue_counts
                    where team_id = :team_id and lane_id = l.id and status = any (:statuses)) as c
             union all
            select m.jobs * (coalesce(m.went_to = any (:statuses), false)::integer
                             - coalesce(m.came_from = any (:statuses), false)::integer)
              from queue_moves m
             where m.team_id = :team_id and m.lane_id in (select id from of_it)) as kept
"""
BOUND_TO_AGENT = text(IN_LANES.replace("{column}", "bound_agent_id"))
OF_CONNECTOR = text(IN_LANES.replace("{column}", "connector_id"))

# The first of jobs_status_idx: ids are in the order of time.
OLDEST = text("""
    select (select created_at from jobs
             where team_id = :team_id and status = 'queued'
             order by id limit 1) as created_at,
           now() as at
""")

# One statement, so that the parts agree with each other.
STATS = text(f"""
    with {COUNTED}, by_lane as materialized (
        select lane_id,
               coalesce(sum(jobs) filter (where status in ('queued', 'scheduled')), 0)::bigint as waiting,
               coalesce(sum(jobs) filter (where status in ('assigned', 'running')), 0)::bigint as held,
               coalesce(sum(jobs) filter (where status in ('succeeded', 'failed', 'dead_letter', 'cancelled')), 0)
                   ::bigint as ended
          from counts
         group by lane_id
    ), fullest as (
        select * from by_lane where waiting > 0 order by waiting desc, lane_id limit {LANES_SHOWN + 1}
    ), tallies as (
        select came_from, went_to, jobs, waited_seconds from queue_tallies where team_id = :team_id
        union all
        select coalesce(came_from, ''), coalesce(went_to, ''), jobs, waited_seconds from moves
    )
    select 'status' as part, c.status as name, sum(c.jobs)::bigint as waiting, 0 as held, 0 as ended,
           null::jsonb as facts, 0 as waited
      from counts c group by c.status
    union all
    (select 'type', coalesce(l.job_type, ''), sum(b.waiting)::bigint, sum(b.held)::bigint, sum(b.ended)::bigint,
            null, 0
       from by_lane b join lanes l on l.team_id = :team_id and l.id = b.lane_id
      group by l.job_type
     having sum(b.waiting + b.held + b.ended) > 0
      order by 3 desc, 4 desc, 2
      limit {TYPES_SHOWN + 1})
    union all
    select 'lane', b.lane_id::text, b.waiting, b.held, b.ended,
           jsonb_build_object('needs', l.required_capabilities, 'type', l.job_type, 'repository', l.repository,
                              'bound_agent_id', l.bound_agent_id, 'bound_to', a.name,
                              'connector_id', l.connector_id, 'connector', k.name), 0
      from fullest b
      join lanes l on l.team_id = :team_id and l.id = b.lane_id
      left join agents a on a.team_id = :team_id and a.id = l.bound_agent_id
      left join connectors k on k.team_id = :team_id and k.id = l.connector_id
    union all
    select 'move', t.came_from || ' ' || t.went_to, sum(t.jobs)::bigint, 0, 0, null, sum(t.waited_seconds)
      from tallies t group by t.came_from, t.went_to
""")  # noqa: S608


async def exact_depths(connection: AsyncConnection, team_id: TeamId) -> dict[JobStatus, int]:
    """How many jobs are in each state, all of them."""
    rows = await connection.execute(DEPTHS, {"team_id": team_id})
    found = {row.status: row.jobs for row in rows}
    return {status: found.get(status.value, 0) for status in JobStatus}


async def jobs_bound_to(
    connection: AsyncConnection, team_id: TeamId, agent_id: AgentId, states: Iterable[JobStatus]
) -> int:
    return await _in_lanes(connection, BOUND_TO_AGENT, team_id, agent_id, states)


async def jobs_of_connector(
    connection: AsyncConnection, team_id: TeamId, connector_id: ConnectorId, states: Iterable[JobStatus]
) -> int:
    return await _in_lanes(connection, OF_CONNECTOR, team_id, connector_id, states)


async def _in_lanes(
    connection: AsyncConnection, lanes: TextClause, team_id: TeamId, id: Id, states: Iterable[JobStatus]
) -> int:
    """As many as are in one of these states, exactly."""
    asked = {"team_id": team_id, "id": id, "statuses": sorted(state.value for state in states)}
    found: int = (await connection.execute(lanes, asked)).scalar_one()
    return found


@dataclass(frozen=True)
class OldestQueued:
    created_at: datetime | None
    at: datetime


async def oldest_queued(connection: AsyncConnection, team_id: TeamId) -> OldestQueued:
    row = (await connection.execute(OLDEST, {"team_id": team_id})).one()
    return OldestQueued(row.created_at, row.at)


@answers(QUEUE_STATS)
async def queue_stats(work: Work, request: Nothing) -> QueueStats:
    asked = {"team_id": work.caller.team_id}
    rows = (await work.connection.execute(STATS, asked)).all()
    oldest = await oldest_queued(work.connection, work.caller.team_id)
    transaction = await oldest_transaction(work.connection)
    depths = {row.name: row.waiting for row in _part(rows, "status")}
    types = sorted(_part(rows, "type"), key=lambda row: (-row.waiting, -row.held, row.name))
    lanes = sorted(_part(rows, "lane"), key=lambda row: (-row.waiting, row.name))
    totals = _totals(_part(rows, "move"))
    warnings = (old_transaction_words(transaction.seconds), many_lanes_words(await _lanes(work)))
    since = oldest.created_at
    return QueueStats(
        by_status=tuple(StatusCount(status=status, jobs=depths.get(status.value, 0)) for status in JobStatus),
        by_type=tuple(
            TypeCount(type=row.name, waiting=row.waiting, held=row.held, ended=row.ended)
            for row in types[:TYPES_SHOWN]
        ),
        types_capped=len(types) > TYPES_SHOWN,
        by_lane=tuple(_lane(row) for row in lanes[:LANES_SHOWN]),
        lanes_capped=len(lanes) > LANES_SHOWN,
        oldest_queued_at=since,
        oldest_queued_seconds=None if since is None else max(0.0, (oldest.at - since).total_seconds()),
        totals=totals,
        average_claim_wait_seconds=totals.claim_wait_seconds / totals.claims if totals.claims else None,
        oldest_transaction_seconds=transaction.seconds,
        hidden_transactions=transaction.hidden,
        oldest_snapshot_transactions=transaction.transactions,
        warnings=tuple(words for words in warnings if words is not None),
        at=oldest.at,
    )


async def _lanes(work: Work) -> int:
    """How many there are, as far as that is worth knowing. Those of one agent cost nobody else anything."""
    found: int = (await work.connection.execute(LANES, {"team_id": work.caller.team_id})).scalar_one()
    return found


def _part(rows: Sequence[Row[Any]], name: str) -> list[Row[Any]]:
    return [row for row in rows if row.part == name]


def _lane(row: Row[Any]) -> LaneCount:
    facts = row.facts
    bound, connector = facts["bound_agent_id"], facts["connector_id"]
    lane = Lane(
        id=LaneId(row.name),
        bound_agent_id=None if bound is None else AgentId(bound),
        required_capabilities=tuple(facts["needs"]),
        job_type=facts["type"],
        repository=facts["repository"],
        connector_id=None if connector is None else ConnectorId(connector),
        credentials=None,
    )
    words = lane_words(lane, facts["bound_to"], facts["connector"])
    return LaneCount(id=lane.id, lane=words, waiting=row.waiting, held=row.held)


def _totals(moves: Iterable[Row[Any]]) -> QueueTotals:
    jobs: dict[tuple[str, str], int] = {}
    waited = 0.0
    for row in moves:
        came_from, _, went_to = row.name.partition(" ")
        jobs[came_from, went_to] = row.waiting
        if came_from in _WAITING and went_to in _HELD:
            waited += row.waited

    def moved(came_from: Sequence[str] | None, went_to: Sequence[str]) -> int:
        return sum(
            count
            for (old, new), count in jobs.items()
            if new in went_to and (old in came_from if came_from is not None else old != "")
        )

    # A job that changes lanes while it waits leaves one and comes into another: it is not created twice.
    created = moved(("",), tuple(JobStatus)) - moved(_WAITING, ("",))
    return QueueTotals(
        created=created,
        claims=moved(_WAITING, _HELD),
        completions=moved(None, ("succeeded",)),
        failures=moved(None, ("failed",)),
        retries=moved(_HELD, ("queued",)),
        dead_letters=moved(None, ("dead_letter",)),
        cancellations=moved(None, ("cancelled",)),
        lease_losses=moved(("lease",), ("lost",)),
        claim_wait_seconds=waited,
    )
