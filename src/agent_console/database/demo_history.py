"""The demo's team, and what it did before anybody looked: jobs of yesterday and a long conversation.

Everything else in the demo comes from agents and people who are really there; this can't, because it is over.
"""

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Table, insert, select
from sqlalchemy.dialects.postgresql import insert as insert_once

from agent_console.database.address import administration_engine, refused
from agent_console.database.example_conversations import OPERATOR, STORIES, Thread, Told
from agent_console.database.example_ids import ExampleIds
from agent_console.database.example_jobs import EXAMPLE_JOBS, ExampleJob
from agent_console.database.tables import (
    agents,
    job_events,
    jobs,
    lanes,
    messages,
    teams,
    thread_participants,
    threads,
    users,
)
from agent_console.domain.ids import (
    AgentId,
    JobEventId,
    JobId,
    LaneId,
    MessageId,
    ParticipantId,
    TeamId,
    ThreadId,
    UserId,
)
from agent_console.domain.lanes import lane_key

TEAM = "demo"
ADMIN, ADMIN_NAME = "ana@example.com", "Ana Costa"
LONG_THREAD = next(thread for thread in STORIES if len(thread.story) > 100)
ENDED = ("succeeded", "failed", "dead_letter", "cancelled")


def ensure_demo_team(dsn: str) -> None:
    """The team and its administrator, in a database without any; two programs at once make one."""
    with refused(dsn), administration_engine(dsn).begin() as connection:
        connection.exec_driver_sql("lock table teams in share row exclusive mode")
        if connection.scalar(select(teams.c.id).limit(1)) is not None:
            return
        team_id = TeamId.new()
        connection.execute(insert(teams).values(id=team_id, slug=TEAM, name="Demo fleet"))
        person = {"email": ADMIN, "full_name": ADMIN_NAME, "role": "admin"}
        connection.execute(insert(users).values(team_id=team_id, id=UserId.new(), **person))


def remember(dsn: str, at: datetime) -> None:
    """Write what is over by now, all of it or nothing, once; the agents it tells of have to be there."""
    with refused(dsn), administration_engine(dsn).begin() as connection:
        connection.exec_driver_sql("lock table threads in share row exclusive mode")
        team = connection.execute(select(teams.c.id, teams.c.created_at).where(teams.c.slug == TEAM)).one_or_none()
        if team is None:
            return
        # Only what is remembered is older than the team: whatever became of its title, it is there.
        of_team = select(threads.c.id).where(threads.c.team_id == team.id, threads.c.created_at < team.created_at)
        if connection.scalar(of_team.limit(1)) is None:
            _Remembering(connection, TeamId.of(team.id), at).write()


class _Remembering:
    def __init__(self, connection: Connection, team_id: TeamId, at: datetime) -> None:
        self.connection = connection
        self.team_id = team_id
        self.at = at
        self.ids = ExampleIds(at)
        of_team = select(agents.c.name, agents.c.id).where(agents.c.team_id == team_id)
        self.agents = {name: AgentId.of(agent_id) for name, agent_id in connection.execute(of_team)}
        people = select(users.c.email, users.c.id).where(users.c.team_id == team_id, users.c.email.is_not(None))
        self.people = {email: UserId.of(user_id) for email, user_id in connection.execute(people)}

    def write(self) -> None:
        for place, job in enumerate(EXAMPLE_JOBS):
            if job.status in ENDED:
                self._job(str(place), job)
        self._thread(LONG_THREAD)

    def ago(self, seconds: float) -> datetime:
        return self.at - timedelta(seconds=seconds)

    def add(self, table: Table, **values: Any) -> None:
        self.connection.execute(insert(table).values(team_id=self.team_id, **values))

    def _lane(self, job: ExampleJob) -> LaneId:
        key = lane_key(None, job.needs, job.type, None, None)
        same = select(lanes.c.id).where(lanes.c.team_id == self.team_id, lanes.c.key == key)
        lane = {"team_id": self.team_id, "id": self.ids.make(LaneId, key), "key": key, "job_type": job.type}
        needs = {"required_capabilities": list(job.needs)}
        self.connection.execute(insert_once(lanes).values(lane | needs).on_conflict_do_nothing())
        return LaneId.of(self.connection.execute(same).scalar_one())

    def _job(self, name: str, job: ExampleJob) -> None:
        job_id, ended = self.ids.make(JobId, name, job.age), self.ago(job.age * 0.5)
        self.add(
            jobs, id=job_id, lane_id=self._lane(job), type=job.type, status=job.status, priority=job.priority,
            payload=job.payload, tool=job.tool, required_capabilities=list(job.needs), attempt=job.attempt,
            agent_id=self.agents.get(job.agent or ""), assigned_at=self.ago(job.age * 0.9) if job.agent else None,
            started_at=self.ago(job.age * 0.8), finished_at=ended, result_summary=job.summary,
            error_message=job.error, created_by_user_id=self.people[ADMIN], created_at=self.ago(job.age),
            updated_at=ended,
        )  # fmt: skip
        self.add(
            job_events, id=self.ids.make(JobEventId, name, job.age), job_id=job_id, message="created as queued",
            created_at=self.ago(job.age),
        )  # fmt: skip

    def _thread(self, thread: Thread) -> None:
        thread_id = self.ids.make(ThreadId, str(thread.title), thread.age)
        owner, since = self.people.get(OPERATOR, self.people[ADMIN]), self.ago(thread.age)
        self.add(
            threads, id=thread_id, title=thread.title, visibility="shared", created_by_user_id=owner,
            created_at=since, updated_at=since,
        )  # fmt: skip
        humans = {
            email: {"user_id": user_id} for email, user_id in self.people.items() if email in (ADMIN, OPERATOR)
        }
        ours = {name: {"agent_id": self.agents[name]} for name in thread.agents if name in self.agents}
        for who, actor in (humans | ours).items():
            self.add(
                thread_participants, id=self.ids.make(ParticipantId, who, thread.age), thread_id=thread_id,
                participant_type="human" if who in humans else "agent", can_read=True, can_write=True,
                can_share=who == OPERATOR, created_by_user_id=owner, created_at=since, **actor,
            )  # fmt: skip
        for place, told in enumerate(thread.story):
            if isinstance(told, Told) and told.who in self.agents:
                self.add(
                    messages, id=self.ids.make(MessageId, str(place), told.age), thread_id=thread_id,
                    content=told.content, created_at=self.ago(told.age), author_type="agent",
                    author_agent_id=self.agents[told.who], to_agent_ids=[],
                )  # fmt: skip
