"""What the example fleet talks about: threads, runs, delegations and the policy they go by.

Two requests wait for a person; a person other than the administrator began both, so that she may decide them.
The same `at` gives the same rows.
"""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Table, insert, select
from sqlalchemy.dialects.postgresql import insert as insert_once

from agent_console.database.address import administration_engine, refused
from agent_console.database.example_conversations import OPERATOR, ROUTES, STORIES, Ran, Thread, Told, Waits
from agent_console.database.example_ids import ExampleIds
from agent_console.database.tables import (
    a2a_route_versions,
    a2a_routes,
    agents,
    approvals,
    jobs,
    lanes,
    messages,
    runs,
    teams,
    thread_participants,
    threads,
    users,
)
from agent_console.domain.approvals import ENVELOPE_FORM
from agent_console.domain.delegation import digest_of, request_digest
from agent_console.domain.ids import (
    AgentId,
    ApprovalId,
    JobId,
    LaneId,
    MessageId,
    ParticipantId,
    RouteId,
    RunId,
    ThreadId,
    UserId,
)
from agent_console.domain.lanes import lane_key
from tests.support.example_fleet import ADMIN, TEAM

JOB_TYPE = "agent_run"


def fill(dsn: str, at: datetime) -> None:
    """Write the story into the example fleet, all of it or nothing, once."""
    with refused(dsn), administration_engine(dsn).begin() as connection:
        connection.exec_driver_sql("lock table a2a_routes in share row exclusive mode")
        if connection.scalar(select(a2a_routes.c.id).limit(1)) is None:
            _Telling(connection, at).tell()


class _Telling:
    def __init__(self, connection: Connection, at: datetime) -> None:
        self.connection = connection
        self.at = at
        self.ids = ExampleIds(at)
        self.team_id = connection.execute(select(teams.c.id).where(teams.c.slug == TEAM)).scalar_one()
        of_team = select(agents.c.name, agents.c.id).where(agents.c.team_id == self.team_id)
        self.agents = {name: AgentId.of(agent_id) for name, agent_id in connection.execute(of_team)}
        people = select(users.c.email, users.c.id).where(
            users.c.team_id == self.team_id, users.c.email.is_not(None)
        )
        self.people = {email: UserId.of(user_id) for email, user_id in connection.execute(people)}
        self.routes: dict[tuple[str, str], RouteId] = {}
        self.runs: dict[str, RunId] = {}
        self.paths: dict[str, tuple[AgentId, ...]] = {}
        self.traces: dict[str, UUID] = {}

    def ago(self, seconds: float) -> datetime:
        return self.at - timedelta(seconds=seconds)

    def add(self, table: Table, **values: Any) -> None:
        self.connection.execute(insert(table).values(team_id=self.team_id, **values))

    def tell(self) -> None:
        for place, (source, target, policy, notes) in enumerate(ROUTES):
            self._route(source, target, policy, notes, 70000 - place)
        for thread in STORIES:
            self._thread(thread)

    def _route(self, source: str, target: str, policy: str, notes: str | None, age: float) -> None:
        route_id = self.routes[source, target] = self.ids.make(RouteId, f"{source}>{target}", age)
        pair = {"from_agent_id": self.agents[source], "to_agent_id": self.agents[target]}
        said = {"policy": policy, "notes": notes, "version": 1}
        who = self.people[ADMIN]
        self.add(
            a2a_routes, id=route_id, **pair, **said, created_by_user_id=who, updated_by_user_id=who,
            created_at=self.ago(age), updated_at=self.ago(age),
        )  # fmt: skip
        self.add(
            a2a_route_versions, route_id=route_id, **pair, **said, reason="first policy", changed_by_user_id=who,
            changed_at=self.ago(age),
        )  # fmt: skip

    def _thread(self, thread: Thread) -> None:
        thread_id = self.ids.make(ThreadId, str(thread.title), thread.age)
        owner, since = self.people[OPERATOR], self.ago(thread.age)
        self.add(
            threads, id=thread_id, title=thread.title, visibility="shared" if thread.shared else "private",
            created_by_user_id=owner, created_at=since, updated_at=since,
            archived_at=self.ago(60000) if thread.archived else None,
        )  # fmt: skip
        for email in (OPERATOR, ADMIN):
            self._participant(thread, thread_id, email, user_id=self.people[email], participant_type="human")
        for name in thread.agents:
            self._participant(thread, thread_id, name, agent_id=self.agents[name], participant_type="agent")
        input_id: MessageId | None = None
        for place, told in enumerate(thread.story):
            key = f"{thread.title}:{place}"
            match told:
                case Told():
                    input_id = self._message(thread_id, key, told)
                case Ran():
                    self._run(thread_id, told, input_id)
                case Waits():
                    self._approval(thread_id, told)

    def _participant(self, thread: Thread, thread_id: ThreadId, who: str, **actor: Any) -> None:
        self.add(
            thread_participants, id=self.ids.make(ParticipantId, f"{thread.title}:{who}", thread.age),
            thread_id=thread_id, can_read=True, can_write=True, can_share=who == OPERATOR,
            thread_archived=thread.archived, created_by_user_id=self.people[OPERATOR],
            created_at=self.ago(thread.age), **actor,
        )  # fmt: skip

    def _message(self, thread_id: ThreadId, key: str, told: Told) -> MessageId:
        message_id = self.ids.make(MessageId, key, told.age)
        person, agent = self.people.get(told.who or ""), self.agents.get(told.who or "")
        self.add(
            messages, id=message_id, thread_id=thread_id, content=told.content, created_at=self.ago(told.age),
            author_type="human" if person else "agent" if agent else "system", author_user_id=person,
            author_agent_id=agent, run_id=self.runs[told.run] if told.run else None,
            to_agent_ids=[str(self.agents[name]) for name in told.to],
        )  # fmt: skip
        return message_id

    def _run(self, thread_id: ThreadId, ran: Ran, input_id: MessageId | None) -> None:
        run_id = self.runs[ran.name] = self.ids.make(RunId, ran.name, ran.age)
        by_agent = self.agents.get(ran.by)
        path = self.paths[ran.name] = (*self.paths.get(ran.parent or "", ()), *([by_agent] if by_agent else []))
        self.traces[ran.name] = self.traces[ran.parent] if ran.parent else UUID(int=run_id.int)
        ended = None if ran.status == "running" else self.ago(ran.age * 0.8)
        self.add(
            runs, id=run_id, thread_id=thread_id, target_agent_id=self.agents[ran.target], status=ran.status,
            requested_by_type="agent" if by_agent else "human", requested_by_agent_id=by_agent,
            requested_by_user_id=self.people.get(ran.by), input_message_id=input_id,
            trace_id=self.traces[ran.name], parent_run_id=self.runs[ran.parent] if ran.parent else None,
            delegation_path=[str(agent_id) for agent_id in path], route_version=1 if by_agent else None,
            deadline_at=self.ago(ran.age - 86400), started_at=self.ago(ran.age * 0.98), ended_at=ended,
            error_code="agent_failed" if ran.error else None, error_message=ran.error,
            output_summary=dict(ran.summary), created_at=self.ago(ran.age), updated_at=ended or self.ago(ran.age),
        )  # fmt: skip
        self._job(ran, run_id, ended)

    def _job(self, ran: Ran, run_id: RunId, ended: datetime | None) -> None:
        """A run has one job, bound to the agent that is asked."""
        target = self.agents[ran.target]
        key = lane_key(target, (), JOB_TYPE, None, None)
        lane_id = self.ids.make(LaneId, key, 80000)
        lane = {"team_id": self.team_id, "id": lane_id, "key": key, "bound_agent_id": target, "job_type": JOB_TYPE}
        self.connection.execute(insert_once(lanes).values(lane).on_conflict_do_nothing())
        runs_now = ended is None
        self.add(
            jobs, id=self.ids.make(JobId, f"run:{ran.name}", ran.age), lane_id=lane_id, type=JOB_TYPE,
            run_id=run_id, status=ran.status, payload={"form": 1, "run_id": str(run_id)},
            bound_agent_id=target, agent_id=target,
            claimed_by=ran.target if runs_now else None, attempt=1, required_capabilities=[],
            assigned_at=self.ago(ran.age * 0.99), started_at=self.ago(ran.age * 0.98), finished_at=ended,
            lease_expires_at=self.ago(-90) if runs_now else None, lease_seconds=120 if runs_now else None,
            error_message=ran.error, created_by_user_id=self.people[OPERATOR], created_at=self.ago(ran.age),
            updated_at=ended or self.ago(ran.age),
        )  # fmt: skip

    def _approval(self, thread_id: ThreadId, waits: Waits) -> None:
        approval_id = self.ids.make(ApprovalId, waits.name, waits.age)
        source, target = self.agents[waits.source], self.agents[waits.target]
        route_id, parent = self.routes[waits.source, waits.target], self.runs[waits.parent]
        path = [str(agent_id) for agent_id in (*self.paths[waits.parent], source)]
        trace = self.traces[waits.parent]
        envelope: dict[str, Any] = {
            "form": ENVELOPE_FORM,
            "approval_id": str(approval_id),
            "from": {"id": str(source), "name": waits.source},
            "to": {"id": str(target), "name": waits.target},
            "thread_id": str(thread_id),
            "parent_run_id": str(parent),
            "trace_id": str(trace),
            "delegation_path": path,
            "route": {"id": str(route_id), "version": 1},
            "input": waits.words,
        }
        by_person = waits.state in ("approved", "rejected")
        self.add(
            approvals, id=approval_id, thread_id=thread_id, from_agent_id=source, to_agent_id=target,
            route_id=route_id, route_version=1, parent_run_id=parent, trace_id=trace, delegation_path=path,
            envelope=envelope, digest=digest_of(envelope), state=waits.state,
            expires_at=self.ago(-waits.left) if waits.state == "pending" else self.ago(waits.age - 3600),
            decided_by_user_id=self.people[ADMIN] if by_person else None,
            decided_at=None if waits.state == "pending" else self.ago(waits.age - 100),
            decision_reason=waits.reason or ("nobody decided in time" if waits.state == "expired" else None),
            request_digest=request_digest(source, target, thread_id, waits.words),
            created_at=self.ago(waits.age),
        )  # fmt: skip
