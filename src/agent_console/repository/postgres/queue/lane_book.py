"""What one process knows of a team's lanes: which there are, and where the waiting jobs of each begin.

All of it is a hint, looked up anew twice a second while somebody claims and before anybody is told that there
is nothing: an old page costs a claim a second look, never a job.
"""

import asyncio
from dataclasses import dataclass, field
from time import monotonic
from uuid import UUID

from agent_console.domain.identity import AuthSource, WorkerAuthContext
from agent_console.domain.ids import AgentId, ConnectorId, LaneId, TeamId
from agent_console.domain.lanes import Lane
from agent_console.domain.team_settings import LEASE_MAX_SECONDS
from agent_console.repository.postgres.queue.connections import QueueConnections
from agent_console.repository.postgres.queue.lanes import lane_from

LOOK_SECONDS = 0.5
# A look walks over what was claimed while somebody holds an old snapshot; then it is done less often.
LOOK_SHARE = 0.05

BEFORE_ALL = (-1001, UUID(int=0))

# Where a claim begins only matters when many entries of claimed jobs lie before the first waiting one, which a
# snapshot held open somewhere keeps there. Until then every claim begins at the very front.
WALKED_AT_MOST = 2_000
# How old what is known of the team's settings may be, and how many different ways to ask are remembered.
SETTINGS_SECONDS = 5.0
WAYS_KEPT = 1_000

# One probe of jobs_claim_order_idx for each lane, and how many entries the probes up to this one had to read:
# the session's own count, which still holds what its last claims read, so it is taken before and after. Bound
# lanes are found by the claim itself.
LANES = f"""
    with before as materialized (
        select pg_stat_get_xact_tuples_returned('jobs_claim_order_idx'::regclass) as walked
    ), heads as materialized (
        select l.id as lane_id, l.bound_agent_id, l.required_capabilities, l.job_type, l.repository,
               l.connector_id, c.credential_location, head.first_priority, head.first_id
          from lanes l
          left join connectors c on c.team_id = l.team_id and c.id = l.connector_id
          left join lateral (
               select - j.priority as first_priority, j.id as first_id from jobs j
                where j.team_id = l.team_id and j.lane_id = l.id and j.look_at = '-infinity'
                order by (- j.priority), j.id
                limit 1) as head on true
         where l.team_id = %(team_id)s and l.bound_agent_id is null and (select walked from before) >= 0
    )
    select heads.*, team.lease_max,
           pg_stat_get_xact_tuples_returned('jobs_claim_order_idx'::regclass)
           - (select walked from before) as walked
      from (select (select s.value from settings s
                     where s.team_id = %(team_id)s and s.name = '{LEASE_MAX_SECONDS.name}') as lease_max) as team
      left join heads on true
"""  # noqa: S608


@dataclass(frozen=True)
class Routing:
    """Everything that decides which lanes an agent may take from. Equals are served together."""

    team_id: TeamId
    capabilities: frozenset[str] = frozenset()
    connectors: frozenset[ConnectorId] = frozenset()
    types: frozenset[str] | None = None
    repositories: frozenset[str] | None = None

    def worker(self) -> WorkerAuthContext:
        return WorkerAuthContext.model_construct(
            worker_id="",
            auth_source=AuthSource.API_KEY,
            allowed_repositories=self.repositories,
            allowed_job_types=self.types,
            capabilities=self.capabilities,
        )


NOBODY = AgentId(int=0)


@dataclass
class Page:
    """One team's lanes as they were last seen. Lanes without a place among the `heads` had nothing waiting."""

    lanes: dict[LaneId, Lane] = field(default_factory=dict)
    heads: dict[LaneId, tuple[int, UUID]] = field(default_factory=dict)
    reached: dict[LaneId, tuple[int, UUID]] = field(default_factory=dict)
    fitting: dict[Routing, tuple[LaneId, ...]] = field(default_factory=dict)
    lease_max: int = LEASE_MAX_SECONDS.default
    crowded: bool = False
    looked_at: float = float("-inf")
    due_at: float = 0.0
    looking: "asyncio.Task[None] | None" = None

    def lanes_for(self, routing: Routing) -> tuple[LaneId, ...]:
        found = self.fitting.get(routing)
        if found is None:
            worker = routing.worker()
            found = tuple(
                lane.id for lane in self.lanes.values() if lane.why_not(worker, NOBODY, routing.connectors) is None
            )
            # An agent says itself which types it wants: what it says may not fill the memory.
            if len(self.fitting) >= WAYS_KEPT:
                self.fitting.clear()
            self.fitting[routing] = found
        return found

    def floors_for(self, routing: Routing) -> dict[LaneId, tuple[int, UUID]]:
        waiting = (lane for lane in self.lanes_for(routing) if lane in self.heads)
        if not self.crowded:
            return dict.fromkeys(waiting, BEFORE_ALL)
        return {lane: max(self.heads[lane], self.reached.get(lane, BEFORE_ALL)) for lane in waiting}


class LaneBook:
    def __init__(self, connections: QueueConnections) -> None:
        self._connections = connections
        self._pages: dict[TeamId, Page] = {}

    def page(self, team_id: TeamId) -> Page:
        return self._pages.setdefault(team_id, Page())

    async def waiting_lanes(self, routing: Routing) -> dict[LaneId, tuple[int, UUID]]:
        """The lanes in which jobs may be waiting for such an agent, each with where to begin."""
        page = self.page(routing.team_id)
        if monotonic() >= page.due_at:
            await self.look(routing.team_id)
        return page.floors_for(routing)

    async def look(self, team_id: TeamId) -> None:
        """See what is there now. Who asks while somebody is looking waits for a look that begins after."""
        page = self.page(team_id)
        asked_at = monotonic()
        while page.looked_at <= asked_at:
            if page.looking is None:
                page.looking = asyncio.create_task(self._look(team_id, page))
            await asyncio.shield(page.looking)

    async def _look(self, team_id: TeamId, page: Page) -> None:
        began = monotonic()
        page.reached = {}
        try:
            found = await self._connections.rows(LANES, {"team_id": team_id})
        finally:
            page.looking = None
        rows = [row for row in found if row.lane_id is not None]
        lanes = {(lane := lane_from(row)).id: lane for row in rows}
        if lanes != page.lanes:
            page.lanes, page.fitting = lanes, {}
        page.heads = {
            LaneId.of(row.lane_id): (row.first_priority, row.first_id) for row in rows if row.first_id is not None
        }
        page.crowded = bool(rows) and rows[-1].walked > WALKED_AT_MOST + len(rows)
        page.lease_max = found[0].lease_max or LEASE_MAX_SECONDS.default
        page.looked_at = began
        page.due_at = monotonic() + max(LOOK_SECONDS, (monotonic() - began) / LOOK_SHARE)

    async def lease_max(self, team_id: TeamId, wanted: int) -> int:
        """The longest lease that anybody of the team may have. Nobody is refused by what was so before."""
        page = self.page(team_id)
        if wanted > page.lease_max or monotonic() - page.looked_at > SETTINGS_SECONDS:
            await self.look(team_id)
        return page.lease_max

    def claimed(self, team_id: TeamId, lane: LaneId, place: tuple[int, UUID]) -> None:
        """Up to this place, its priority negated, the lane's jobs were given away."""
        reached = self.page(team_id).reached
        reached[lane] = max(reached.get(lane, BEFORE_ALL), place)

    def came(self, team_id: TeamId, lane: LaneId) -> bool:
        """Something may be claimed in this lane; False when the lane is not known yet."""
        page = self.page(team_id)
        if lane not in page.lanes:
            page.due_at = 0.0
            return False
        page.heads.setdefault(lane, page.reached.get(lane, BEFORE_ALL))
        return True

    def forget(self, team_id: TeamId) -> None:
        self.page(team_id).due_at = 0.0
