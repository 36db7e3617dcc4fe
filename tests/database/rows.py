"""A minimal valid row of every table, for tests that try what the schema allows and what it refuses.

Each function inserts one row of a team and returns it. What a row needs is made with it, unless `changes` name
it. A value may be a function of the team: it is called when the row is inserted.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, date, datetime
from functools import partial
from typing import Protocol
from uuid import UUID

import psycopg
import pytest
from psycopg.types.json import Jsonb

from agent_console.domain.ids import (
    AgentId,
    ApprovalId,
    AuditId,
    CheckpointId,
    CollectionId,
    ConnectorId,
    Id,
    JobEventId,
    JobId,
    LaneId,
    MessageId,
    OperatorTokenId,
    ParticipantId,
    RegistrationTokenId,
    ResultId,
    RouteId,
    RunId,
    SessionId,
    TeamId,
    ThreadId,
    UserId,
    WorkerTokenId,
)
from tests.database.endless_times import EndlessTimes
from tests.database.team import Connection, Row, Team
from tests.support.clusters import TemplateDatabase

LATER = datetime(2099, 1, 1, tzinfo=UTC)


class Add(Protocol):
    def __call__(self, team: "Team", **changes: object) -> Row: ...


def _hash() -> str:
    return hashlib.sha256(TeamId.new().bytes).hexdigest()


def _row(team: Team, kind: type[Id], changes: Row, row: Row) -> Row:
    return {"team_id": team.team_id, "id": kind.new()} | row | changes


def _unless_given(changes: Row, **made: Callable[[], object]) -> Row:
    return {name: changes[name] if name in changes else make() for name, make in made.items()}


def make_team(connection: Connection, slug: str = "north") -> Team:
    connection.adapters.register_loader("timestamptz", EndlessTimes)
    team = Team(connection, TeamId.new(), UserId.new())
    team.insert("teams", {"id": team.team_id, "slug": slug, "name": slug})
    add_user(team, id=team.user_id, email=f"admin@{slug}.example", role="admin")
    return team


@contextmanager
def settled_team(templates: TemplateDatabase, name: str) -> Iterator[Team]:
    """A team in a database of its own, never committed: the tests of a file work on it in savepoints."""
    database = f"rows_{name}"
    templates.clone("template_empty", database)
    try:
        with psycopg.connect(templates.cluster.dsn(database)) as connection:
            yield make_team(connection)
            connection.rollback()
    finally:
        templates.drop(database)


def refused_by(team: Team, attempt: Callable[[], object]) -> str:
    """The name of the constraint that refuses the attempt, or of the column that may not be null."""
    with pytest.raises(psycopg.IntegrityError) as caught, team.connection.transaction():
        attempt()
        team.connection.execute("set constraints all immediate")
    diagnosis = caught.value.diag
    return diagnosis.constraint_name or diagnosis.column_name or ""


def adding(team: Team, table: str, **changes: object) -> Callable[[], Row]:
    return partial(ADD[table], team, **changes)


def required_columns(team: Team, table: str) -> set[str]:
    found = team.execute(
        "select attname from pg_attribute where attrelid = %s::regclass and attnum > 0 and attnotnull", table
    )
    return {str(row["attname"]) for row in found}


def checks_of(team: Team, *tables: str) -> set[str]:
    """The checks of these tables, but for the one on the id's version that every table shares."""
    found = team.execute(
        "select conname from pg_constraint where contype = 'c' and conrelid = any(%s::regclass[])", list(tables)
    )
    return {name for row in found if not (name := str(row["conname"])).endswith("_id_v7")}


def add_team(team: Team, **changes: object) -> Row:
    return team.insert("teams", {"id": TeamId.new(), "slug": "south", "name": "South"} | changes)


def add_user(team: Team, **changes: object) -> Row:
    email = f"{UserId.new()}@people.example"
    row: Row = {"email": email, "full_name": "Ole Berg", "role": "operator"}
    return team.insert("users", _row(team, UserId, changes, row))


def add_system_user(team: Team, **changes: object) -> Row:
    row: Row = {"kind": "system", "full_name": "Agent: atlas"}
    return team.insert("users", _row(team, UserId, changes, row))


def add_operator_token(team: Team, **changes: object) -> Row:
    row: Row = {"user_id": team.user_id, "created_by_user_id": team.user_id}
    row |= {"token_hash": _hash(), "token_prefix": "opt_key_abcdefgh"}
    return team.insert("operator_tokens", _row(team, OperatorTokenId, changes, row))


def add_setting(team: Team, **changes: object) -> Row:
    return team.insert("settings", {"team_id": team.team_id, "name": "audit.days", "value": Jsonb(90)} | changes)


def add_agent(team: Team, **changes: object) -> Row:
    name = str(AgentId.new())
    row: Row = {"name": name, "worker_id": name, "owner_user_id": team.user_id}
    row |= {"created_by_user_id": team.user_id, "api_key_hash": _hash(), "api_key_prefix": "agt_key_abcdefgh"}
    row |= _unless_given(changes, system_user_id=lambda: add_system_user(team)["id"])
    return team.insert("agents", _row(team, AgentId, changes, row))


def agent_id(team: Team) -> object:
    return add_agent(team)["id"]


def add_agent_runtime(team: Team, **changes: object) -> Row:
    row = _unless_given(changes, agent_id=lambda: agent_id(team))
    return team.insert("agent_runtime", {"team_id": team.team_id} | row | changes)


def add_pool_count(team: Team, **changes: object) -> Row:
    # Not the row that the triggers keep for this session.
    shard = (team.connection.info.backend_pid + 1) % 16
    return team.insert("pool_counts", {"team_id": team.team_id, "shard": shard} | changes)


def add_registration_token(team: Team, **changes: object) -> Row:
    row: Row = {"created_by_user_id": team.user_id, "token_hash": _hash(), "token_prefix": "art_key_abcdefgh"}
    return team.insert("registration_tokens", _row(team, RegistrationTokenId, changes, row))


def add_worker_token(team: Team, **changes: object) -> Row:
    row: Row = {"worker_id": "atlas", "created_by_user_id": team.user_id}
    row |= {"token_hash": _hash(), "token_prefix": "wkt_key_abcdefgh"}
    return team.insert("worker_tokens", _row(team, WorkerTokenId, changes, row))


def add_connector(team: Team, **changes: object) -> Row:
    row: Row = {"name": str(ConnectorId.new()), "type": "s3", "created_by_user_id": team.user_id}
    return team.insert("connectors", _row(team, ConnectorId, changes, row))


def connector_id(team: Team) -> object:
    return add_connector(team)["id"]


def add_agent_connector(team: Team, **changes: object) -> Row:
    row = _unless_given(changes, agent_id=lambda: agent_id(team), connector_id=lambda: connector_id(team))
    return team.insert("agent_connectors", {"team_id": team.team_id} | row | changes)


def add_collection(team: Team, **changes: object) -> Row:
    row: Row = {"name": str(CollectionId.new()), "type": "s3", "created_by_user_id": team.user_id}
    return team.insert("collections", _row(team, CollectionId, changes, row))


def collection_id(team: Team) -> object:
    return add_collection(team)["id"]


def add_session(team: Team, **changes: object) -> Row:
    row: Row = {"user_id": team.user_id} | _unless_given(changes, agent_id=lambda: agent_id(team))
    return team.insert("sessions", _row(team, SessionId, changes, row))


def add_thread(team: Team, **changes: object) -> Row:
    return team.insert("threads", _row(team, ThreadId, changes, {"created_by_user_id": team.user_id}))


def thread_id(team: Team) -> object:
    return add_thread(team)["id"]


def add_participant(team: Team, **changes: object) -> Row:
    row: Row = {"participant_type": "human", "user_id": team.user_id}
    row |= _unless_given(changes, thread_id=lambda: thread_id(team))
    return team.insert("thread_participants", _row(team, ParticipantId, changes, row))


def add_message(team: Team, **changes: object) -> Row:
    row: Row = {"author_type": "human", "author_user_id": team.user_id, "content": "Good morning."}
    row |= _unless_given(changes, thread_id=lambda: thread_id(team))
    return team.insert("messages", _row(team, MessageId, changes, row))


def message_id(team: Team) -> object:
    return add_message(team)["id"]


def add_run(team: Team, **changes: object) -> Row:
    row: Row = {"requested_by_type": "human", "requested_by_user_id": team.user_id}
    row |= _unless_given(changes, thread_id=lambda: thread_id(team), target_agent_id=lambda: agent_id(team))
    return team.insert("runs", _row(team, RunId, changes, row))


def run_id(team: Team) -> object:
    return add_run(team)["id"]


def add_route(team: Team, **changes: object) -> Row:
    pair = _unless_given(changes, from_agent_id=lambda: agent_id(team), to_agent_id=lambda: agent_id(team))
    return team.insert("a2a_routes", _row(team, RouteId, changes, {"policy": "allowed"} | pair))


def add_route_version(team: Team, **changes: object) -> Row:
    row: Row = {"team_id": team.team_id, "route_id": RouteId.new(), "version": 1, "policy": "allowed"}
    pair: Row = {"from_agent_id": AgentId.new(), "to_agent_id": AgentId.new()}
    return team.insert("a2a_route_versions", row | pair | changes)


def add_approval(team: Team, **changes: object) -> Row:
    row: Row = {"route_id": RouteId.new(), "route_version": 1, "trace_id": UUID(int=TeamId.new().int)}
    row |= {"envelope": {"text": "deploy"}, "digest": _hash(), "expires_at": LATER}
    row |= _unless_given(
        changes,
        thread_id=lambda: thread_id(team),
        from_agent_id=lambda: agent_id(team),
        to_agent_id=lambda: agent_id(team),
    )
    return team.insert("approvals", _row(team, ApprovalId, changes, row))


def add_approval_look(team: Team, **changes: object) -> Row:
    row: Row = {"team_id": team.team_id, "user_id": team.user_id, "session": "c0ffee"}
    row |= _unless_given(changes, approval_id=lambda: add_approval(team)["id"])
    return team.insert("approval_looks", row | changes)


def add_lane(team: Team, **changes: object) -> Row:
    return team.insert("lanes", _row(team, LaneId, changes, {"key": _hash()}))


def lane_id(team: Team) -> object:
    return add_lane(team)["id"]


def add_job(team: Team, **changes: object) -> Row:
    row: Row = {"type": "report", "payload": {}} | _unless_given(changes, lane_id=lambda: lane_id(team))
    return team.insert("jobs", _row(team, JobId, changes, row))


def job_id(team: Team) -> object:
    return add_job(team)["id"]


def add_job_event(team: Team, **changes: object) -> Row:
    row: Row = {"message": "created as queued"} | _unless_given(changes, job_id=lambda: job_id(team))
    return team.insert("job_events", _row(team, JobEventId, changes, row))


def add_job_result(team: Team, **changes: object) -> Row:
    row: Row = {"attempt": 1, "created_by_user_id": team.user_id}
    row |= _unless_given(changes, job_id=lambda: job_id(team))
    return team.insert("job_results", _row(team, ResultId, changes, row))


def add_queue_move(team: Team, **changes: object) -> Row:
    return team.insert("queue_moves", {"team_id": team.team_id, "lane_id": LaneId.new(), "jobs": 1} | changes)


def add_queue_count(team: Team, **changes: object) -> Row:
    row: Row = {"team_id": team.team_id, "lane_id": LaneId.new(), "status": "queued", "jobs": 1}
    return team.insert("queue_counts", row | changes)


def add_queue_tally(team: Team, **changes: object) -> Row:
    row: Row = {"team_id": team.team_id, "came_from": "lease", "went_to": "lost", "jobs": 1, "waited_seconds": 0.0}
    return team.insert("queue_tallies", row | changes)


def add_duty_round(team: Team, **changes: object) -> Row:
    return team.insert("duty_rounds", {"duty": "sweep"} | changes)


def add_schema_fit(team: Team, **changes: object) -> Row:
    return team.insert("schema_fits", {"revision": "0001"} | changes)


def add_audit_row(team: Team, **changes: object) -> Row:
    row: Row = {"actor_type": "human", "actor_user_id": team.user_id, "actor_label": "Ana Costa"}
    row |= {"action": "job.create", "resource_type": "job", "resource_id": "job_1", "event_hash": bytes(32)}
    return team.insert("audit_log", _row(team, AuditId, changes, row))


def add_audit_seal(team: Team, **changes: object) -> Row:
    row: Row = {"team_id": team.team_id, "position": 1, "audit_id": AuditId.new(), "audit_created_at": LATER}
    row |= {"audit_seq": 1, "audit_xid": "7"} | dict.fromkeys(("event_hash", "prev_hash", "hash"), bytes(32))
    return team.insert("audit_seals", row | changes)


def add_audit_head(team: Team, **changes: object) -> Row:
    row: Row = {"team_id": team.team_id, "position": 1, "hash": bytes(32), "highest_seq": 1}
    row |= {"audit_xid": "7", "audit_seq": 1}
    return team.insert("audit_heads", row | changes)


def add_checkpoint(team: Team, **changes: object) -> Row:
    row: Row = {"month": date(2026, 1, 1), "first_position": 1, "last_position": 9, "rows": 9}
    return team.insert("audit_checkpoints", _row(team, CheckpointId, changes, row | {"last_hash": bytes(32)}))


# Every table, each after those it refers to.
ADD: Mapping[str, Add] = {
    "teams": add_team,
    "users": add_user,
    "operator_tokens": add_operator_token,
    "settings": add_setting,
    "agents": add_agent,
    "agent_runtime": add_agent_runtime,
    "pool_counts": add_pool_count,
    "registration_tokens": add_registration_token,
    "worker_tokens": add_worker_token,
    "connectors": add_connector,
    "agent_connectors": add_agent_connector,
    "collections": add_collection,
    "sessions": add_session,
    "threads": add_thread,
    "thread_participants": add_participant,
    "messages": add_message,
    "runs": add_run,
    "a2a_routes": add_route,
    "a2a_route_versions": add_route_version,
    "approvals": add_approval,
    "approval_looks": add_approval_look,
    "lanes": add_lane,
    "jobs": add_job,
    "job_events": add_job_event,
    "job_results": add_job_result,
    "audit_log": add_audit_row,
    "audit_seals": add_audit_seal,
    "audit_heads": add_audit_head,
    "audit_checkpoints": add_checkpoint,
    "queue_moves": add_queue_move,
    "queue_counts": add_queue_count,
    "queue_tallies": add_queue_tally,
    "duty_rounds": add_duty_round,
    "schema_fits": add_schema_fit,
}
# What is done for all teams at once belongs to none.
OF_NO_TEAM = frozenset({"teams", "duty_rounds", "schema_fits"})
