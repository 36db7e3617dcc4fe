"""The fixed fleet that tests and pictures look at: the same `at` gives the same rows."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Table, insert, select
from sqlalchemy.dialects.postgresql import insert as insert_once

from agent_console.database.address import administration_engine, refused
from agent_console.database.example_ids import ExampleIds
from agent_console.database.example_jobs import EXAMPLE_JOBS, ExampleJob
from agent_console.database.tables import agent_runtime, agents, job_events, jobs, lanes, teams, users
from agent_console.domain.ids import AgentId, JobEventId, JobId, LaneId, TeamId, UserId
from agent_console.domain.lanes import lane_key

TEAM = "example"
ADMIN = "ana@example.com"


@dataclass(frozen=True)
class ExampleAgent:
    name: str
    hostname: str
    capabilities: tuple[str, ...]
    presence: str = "online"
    seconds_silent: int = 4
    error: str | None = None
    concurrency: int = 1
    drained: bool = False
    revoked: str | None = None


EXAMPLE_AGENTS = (
    ExampleAgent("atlas", "nas-01", ("local_filesystem", "tool:photostats:1.2.3")),
    ExampleAgent("beacon", "edge-berlin", ("tool:crawler:4.0.1",), seconds_silent=11),
    ExampleAgent("cartographer", "gpu-02", ("tool:report:2.1.0", "tool:summary:2.1.0"), concurrency=4),
    ExampleAgent("dispatch", "core-01", ("tool:triage:0.9.0",), seconds_silent=2, concurrency=2),
    ExampleAgent("ember", "gpu-03", ("tool:codex:5.4.0",), concurrency=2),
    ExampleAgent("fathom", "archive-7", ("local_filesystem", "tool:photo_pairing:1.2.3"), drained=True),
    ExampleAgent(
        "gantry", "edge-oslo", ("tool:deploy:3.3.0",), presence="error", error="disk /var/cache is 98 % full"
    ),
    ExampleAgent("harbor", "edge-lyon", ("tool:crawler:4.0.1",), presence="offline", seconds_silent=5400),
    ExampleAgent("iris", "laptop-ana", ("tool:report:2.0.0",), presence="unknown", seconds_silent=0),
    ExampleAgent("juniper", "core-02", ("tool:triage:0.8.2",), presence="offline", revoked="key found in a log"),
)


def fill(dsn: str, at: datetime) -> None:
    """Write the fleet in one transaction, all of it or nothing; two programs at once make one fleet."""
    with refused(dsn), administration_engine(dsn).begin() as connection:
        connection.exec_driver_sql("lock table teams in share row exclusive mode")
        if connection.scalar(select(teams.c.id).where(teams.c.slug == TEAM)) is None:
            _Filling(connection, at).fill()


class _Filling:
    def __init__(self, connection: Connection, at: datetime) -> None:
        self.connection = connection
        self.at = at
        self.ids = ExampleIds(at)
        self.team_id = self.ids.make(TeamId, TEAM)
        self.admin_id = self.ids.make(UserId, ADMIN)
        self.agent_ids: dict[str, AgentId] = {}

    def ago(self, seconds: float | None) -> datetime | None:
        return None if seconds is None else self.at - timedelta(seconds=seconds)

    def add(self, table: Table, values: Mapping[str, Any]) -> None:
        self.connection.execute(insert(table).values(values))

    def fill(self) -> None:
        self.add(teams, {"id": self.team_id, "slug": TEAM, "name": "Example fleet"})
        for email, name, role in (
            (ADMIN, "Ana Costa", "admin"),
            ("ole@example.com", "Ole Berg", "operator"),
            ("vera@example.com", "Vera Lind", "viewer"),
        ):
            user_id = self.ids.make(UserId, email)
            facts = {"email": email, "full_name": name, "role": role, "created_at": self.ago(86400)}
            self.add(users, {"team_id": self.team_id, "id": user_id} | facts)
        for place, agent in enumerate(EXAMPLE_AGENTS):
            self._agent(agent, seconds_old=80000 - place)
        for place, job in enumerate(EXAMPLE_JOBS):
            self._job(place, job)

    def _agent(self, agent: ExampleAgent, seconds_old: int) -> None:
        agent_id = self.agent_ids[agent.name] = self.ids.make(AgentId, agent.name, seconds_old)
        system_id = self.ids.make(UserId, f"system:{agent.name}", seconds_old)
        born = {"created_at": self.ago(seconds_old), "updated_at": self.ago(seconds_old)}
        name = {"kind": "system", "full_name": f"Agent: {agent.name}"}
        self.add(users, {"team_id": self.team_id, "id": system_id} | name | born)
        key_hash = hashlib.sha256(f"example:{agent.name}".encode()).hexdigest()
        self.add(
            agents,
            {
                "team_id": self.team_id,
                "id": agent_id,
                "name": agent.name,
                "owner_user_id": self.admin_id,
                "system_user_id": system_id,
                "created_by_user_id": self.admin_id,
                "worker_id": agent.name,
                "hostname": agent.hostname,
                "os_info": "Debian 12",
                "version": "0.1.0",
                "api_key_hash": key_hash,
                "api_key_prefix": f"agt_key_{key_hash[:8]}",
                "max_concurrent_jobs": agent.concurrency,
                "drained_at": self.ago(900) if agent.drained else None,
                "drain_reason": "disk swap" if agent.drained else None,
                "revoked_at": self.ago(7200) if agent.revoked else None,
                "revocation_reason": agent.revoked,
            }
            | born,
        )
        seen = agent.presence != "unknown"
        self.add(
            agent_runtime,
            {
                "team_id": self.team_id,
                "agent_id": agent_id,
                "presence": agent.presence,
                "error_message": agent.error,
                "last_heartbeat_at": self.ago(agent.seconds_silent) if seen else None,
                "capabilities": list(agent.capabilities),
                "metrics": {"cpu": 0.31, "memory": 0.54} if agent.presence == "online" else {},
            },
        )

    def _lane(self, bound: AgentId | None, job: ExampleJob) -> LaneId:
        key = lane_key(bound, job.needs, job.type, None, None)
        lane_id = self.ids.make(LaneId, key, 80000)
        lane = {"team_id": self.team_id, "id": lane_id, "key": key, "bound_agent_id": bound}
        facts = {"required_capabilities": list(job.needs), "job_type": job.type}
        self.connection.execute(insert_once(lanes).values(lane | facts).on_conflict_do_nothing())
        return lane_id

    def _job(self, place: int, job: ExampleJob) -> None:
        job_id = self.ids.make(JobId, str(place), job.age)
        bound = self.agent_ids[job.bound_to] if job.bound_to else None
        lane_id = self._lane(bound, job)
        held = job.status in ("assigned", "running")
        started = None if job.status in ("queued", "scheduled", "assigned") else job.age * 0.8
        finished = job.age * 0.5 if job.status in ("succeeded", "failed", "dead_letter", "cancelled") else None
        self.add(
            jobs,
            {
                "team_id": self.team_id,
                "id": job_id,
                "lane_id": lane_id,
                "type": job.type,
                "status": job.status,
                "priority": job.priority,
                "payload": job.payload,
                "tool": job.tool,
                "bound_agent_id": bound,
                "required_capabilities": list(job.needs),
                "agent_id": self.agent_ids[job.agent] if job.agent else None,
                "claimed_by": job.agent if held else None,
                "attempt": job.attempt,
                "progress": job.progress,
                "scheduled_for": self.ago(-job.due_in) if job.due_in else None,
                "assigned_at": self.ago(job.age * 0.9) if job.agent else None,
                "started_at": self.ago(started),
                "finished_at": self.ago(finished),
                "lease_expires_at": self.ago(-90) if held else None,
                "lease_seconds": 120 if held else None,
                "cancel_requested_at": self.ago(8) if job.cancelling else None,
                "result_summary": job.summary,
                "error_message": job.error,
                "created_by_user_id": self.admin_id,
                "created_at": self.ago(job.age),
                "updated_at": self.ago(finished or job.age * 0.8),
            },
        )
        self.add(
            job_events,
            {
                "team_id": self.team_id,
                "id": self.ids.make(JobEventId, str(place), job.age),
                "job_id": job_id,
                "message": f"created as {'scheduled' if job.due_in else 'queued'}",
                "created_at": self.ago(job.age),
            },
        )
