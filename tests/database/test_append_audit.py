"""An act written from inside the database has the form of one that the program writes, byte for byte."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from ipaddress import ip_address

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from psycopg.types.json import Jsonb

from agent_console.database.roles import APP, MAINTENANCE, READ_ONLY
from agent_console.domain.audit import ACTIONS, NOWHERE, Actor, AuditEvent, Fact, Place, event_hash
from agent_console.domain.ids import AgentId, AuditId, RunId, TeamId, ThreadId, UserId
from agent_console.domain.kinds import ActorType, Decision
from tests.database import rows
from tests.database.acting import acting_as
from tests.database.team import Connection, Team
from tests.support.clusters import Cluster, TemplateDatabase

HASH = "select audit_event_hash(1::smallint" + ", %s" * 17 + ")"
HOSTILE = (
    "",
    "\x1b]52;c;x\x07",
    "'; drop table audit_log; --",
    "Žluťoučký kůň 馬 🐎",
    "\u202e[/]",
    '\r\n\t\x01\\"',
)
TEAM, USER, AGENT = TeamId.new(), UserId.new(), AgentId.new()
AT = datetime(2026, 3, 1, 3, 0, 0, 123456, tzinfo=UTC)

any_words = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
words = any_words | st.sampled_from(HOSTILE)
facts = st.dictionaries(words, st.none() | st.booleans() | st.integers() | words, max_size=6)
places = st.just(NOWHERE) | st.builds(Place, st.none() | st.ip_addresses(), st.none() | words)
people = st.builds(Actor, st.just(ActorType.HUMAN), st.just(USER), words, place=places)
agents = st.builds(Actor, st.just(ActorType.AGENT), st.none(), words, st.just(AGENT))
times = st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


@pytest.fixture(scope="module")
def settled(templates: TemplateDatabase) -> Iterator[Team]:
    with rows.settled_team(templates, "append_audit") as team:
        yield team


@pytest.fixture
def team(settled: Team) -> Iterator[Team]:
    with settled.connection.transaction(force_rollback=True):
        yield settled


def an_event(metadata: Mapping[str, Fact], **told: object) -> AuditEvent:
    """An act whose metadata nobody has to have registered: their form is what is tried here."""
    event = AuditEvent(next(iter(ACTIONS)), "job", "job_1")
    vars(event).update(told | {"metadata": metadata})
    return event


def hash_in_the_database(
    connection: Connection, audit_id: AuditId, actor: Actor, event: AuditEvent, at: datetime
) -> object:
    given = (
        *(TEAM, audit_id, at, actor.type.value, actor.user_id, actor.agent_id, actor.label),
        *(event.action, event.resource_type, event.resource_id, event.thread_id, event.run_id),
        *(None if event.decision is None else event.decision.value, event.reason),
        *(actor.place.ip, actor.place.user_agent, Jsonb(dict(event.metadata))),
    )
    found = connection.execute(HASH.encode(), given).fetchone()
    assert found is not None
    return found[0]


@pytest.mark.rule("R002-90")
@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    actor=people | agents,
    at=times,
    metadata=facts,
    told=st.fixed_dictionaries(
        {
            "resource_type": words,
            "resource_id": words,
            "reason": st.none() | words,
            "decision": st.none() | st.sampled_from(Decision),
            "thread_id": st.none() | st.builds(ThreadId.new),
            "run_id": st.none() | st.builds(RunId.new),
        }
    ),
)
def test_the_program_and_the_database_take_the_same_hash(
    settled: Team, actor: Actor, at: datetime, metadata: dict[str, Fact], told: dict[str, object]
) -> None:
    audit_id, event = AuditId.new(), an_event(metadata, **told)

    found = hash_in_the_database(settled.connection, audit_id, actor, event, at)

    assert found == event_hash(TEAM, audit_id, actor, event, at)


def test_every_version_takes_the_same_hash(server: Cluster, team: Team) -> None:
    (function,) = team.execute("select pg_get_functiondef('audit_event_hash'::regproc) as told")
    metadata: dict[str, Fact] = {"b": 10**30, "aa": True, "Ž": None, "a": HOSTILE[1], "": HOSTILE[5]}
    actor = Actor(ActorType.HUMAN, USER, HOSTILE[3], place=Place(ip_address("2001:db8::7"), HOSTILE[4]))
    event = an_event(metadata, reason=HOSTILE[2])
    audit_id = AuditId.new()

    with psycopg.connect(server.dsn()) as connection:
        connection.execute(str(function["told"]).encode())
        found = hash_in_the_database(connection, audit_id, actor, event, AT)
        connection.rollback()

    assert found == event_hash(TEAM, audit_id, actor, event, AT)


def append(team: Team, metadata: Mapping[str, Fact]) -> dict[str, object]:
    (made,) = team.execute(
        "select append_audit(%s, 'agent', null, %s, 'atlas', 'job.create', 'run', 'run_1', %s, %s, %s, 'allow', %s"
        ") as id",
        *(team.team_id, AGENT, Jsonb(dict(metadata)), ThreadId.new(), RunId.new(), "because"),
    )
    return team.stored("audit_log", {"id": made["id"]})


@pytest.mark.parametrize("role", [APP, MAINTENANCE])
def test_what_the_database_appends_is_what_the_program_would_have_written(team: Team, role: str) -> None:
    with acting_as(team, role):
        row = append(team, {"type": HOSTILE[1], "priority": 3})

    assert isinstance(row["created_at"], datetime)
    actor = Actor(ActorType.AGENT, None, "atlas", AGENT)
    told = {name: row[name] for name in ("resource_type", "resource_id", "reason", "thread_id", "run_id")}
    event = an_event({"priority": 3, "type": HOSTILE[1]}, action="job.create", decision=Decision.ALLOW, **told)
    audit_id = AuditId(hex=str(row["id"]))
    assert row["event_hash"] == event_hash(team.team_id, audit_id, actor, event, row["created_at"])
    (clock,) = team.execute("select now() as now, pg_current_xact_id() as xid")
    assert (row["created_at"], row["xid"]) == (clock["now"], clock["xid"])


@pytest.mark.parametrize("nested", [{"why": {"text": "secret"}}, {"why": ["secret"]}])
def test_only_plain_values_are_appended(team: Team, nested: dict[str, object]) -> None:
    told = "select append_audit(%s, 'system', null, null, 'agent-console', 'job.create', 'job', 'job_1', %s)"
    with pytest.raises(psycopg.errors.CheckViolation, match="plain values only"), team.connection.transaction():
        team.execute(told, team.team_id, Jsonb(nested))

    assert team.execute("select 1 from audit_log") == []


def test_nobody_else_appends(team: Team) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege), acting_as(team, READ_ONLY):
        append(team, {})

    assert team.execute("select 1 from audit_log") == []


@pytest.mark.parametrize("given", ["seq", "xid"])
def test_number_and_transaction_are_given_by_the_database_alone(team: Team, given: str) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege), acting_as(team, APP):
        rows.add_audit_row(team, **{given: "7"})
