"""What reading and sealing the trail costs: about a page, by an index of each month, whatever the trail holds."""

import re
from collections.abc import Iterator
from uuid import UUID

import pytest
from sqlalchemy import Connection, NullPool, Select, TextClause, create_engine

from agent_console.database.address import sqlalchemy_url
from agent_console.domain.audit_trail import AuditFilter, AuditQuery
from agent_console.domain.identity import AuthSource, Caller
from agent_console.domain.ids import AgentId, Id, RunId, ThreadId, UserId
from agent_console.domain.permissions import Role
from agent_console.repository.postgres.audit import trail as audit_trail
from agent_console.repository.postgres.audit.bounds import POSITION_AT, SEQ_AT
from agent_console.repository.postgres.audit.links import LINKS, LOOKED_UP
from agent_console.repository.postgres.audit.rows import with_seals
from agent_console.repository.postgres.audit.sealing import TEAMS_TO_SEAL
from agent_console.repository.postgres.audit.tail import sealed_acts
from agent_console.repository.postgres.audit.trail import newest_acts, window
from tests.conftest import FLEET_TEMPLATE
from tests.support.clusters import TemplateDatabase
from tests.support.fleet import Fleet

# One worker runs them all, so that the trail is made once.
pytestmark = pytest.mark.xdist_group("audit-plans")

ACTS = 20_000
LOOKED_AT = 300
SCAN = re.compile(
    r"(Seq Scan|Index Scan|Index Only Scan|Bitmap Heap Scan)\b.* on audit_\w+.*?rows=([\d.]+) loops=(\d+)"
)

# Forty threads, agents and people take turns; nobody has to prove this trail.
FILL = """
    with made as (
        insert into audit_log (team_id, id, actor_type, actor_user_id, actor_agent_id, actor_label, action,
                               resource_type, resource_id, thread_id, run_id, event_hash)
        select %s, new_id(), case n %% 2 when 0 then 'human' else 'agent' end,
               case n %% 2 when 0 then nth_id('b', n %% 40) end,
               case n %% 2 when 1 then nth_id('c', n %% 40) end,
               'x', 'job.a' || n %% 40, 'job', 'job_' || n %% 40, nth_id('d', n %% 40), nth_id('e', n %% 40),
               sha256('x')
          from generate_series(1, %s) as n
        returning team_id, id, created_at, seq, xid
    )
    insert into audit_seals (team_id, position, audit_id, audit_created_at, audit_seq, audit_xid, event_hash,
                             prev_hash, hash)
    select team_id, row_number() over (order by seq), id, created_at, seq, xid, sha256('x'), sha256(int8send(seq)),
           sha256('x')
      from made
"""
HEAD = """
    insert into audit_heads (team_id, position, hash, audit_xid, audit_seq, highest_seq)
    select team_id, position, hash, audit_xid, audit_seq, audit_seq from audit_seals order by position desc limit 1
"""
NTH_ID = """
    create function nth_id(kind text, n bigint) returns uuid language sql immutable
    return ('01890a5d-ac96-774b-bcce-' || kind || lpad(n::text, 11, '0'))::uuid
"""


def nth(kind: type[Id], letter: str) -> Id:
    return kind.of(UUID(f"01890a5d-ac96-774b-bcce-{letter}{7:011d}"))


@pytest.fixture(scope="module")
def trail(templates: TemplateDatabase) -> Iterator[Fleet]:
    """A long trail, made once: nothing here changes it."""
    templates.clone(FLEET_TEMPLATE, "trail")
    with Fleet(templates.cluster.dsn("trail")) as fleet:
        fleet.execute(NTH_ID)
        fleet.execute(FILL, fleet.team_id(), ACTS)
        fleet.execute(HEAD)
        fleet.execute("vacuum analyze audit_log")
        fleet.execute("vacuum analyze audit_seals")
        yield fleet
    templates.drop("trail")


@pytest.fixture
def connection(trail: Fleet) -> Iterator[Connection]:
    with create_engine(sqlalchemy_url(trail.administration), poolclass=NullPool).connect() as connection:
        yield connection


def caller(trail: Fleet, role: Role = Role.ADMIN) -> Caller:
    return Caller(
        team_id=trail.team_id(),
        team="example",
        user_id=trail.user_id("vera@example.com"),
        name="Vera",
        role=role,
        auth_source=AuthSource.DATABASE,
    )


def plan_of(connection: Connection, query: Select[tuple[object, ...]] | TextClause, **given: object) -> str:
    compiled = query.compile(connection, compile_kwargs={"render_postcompile": True})
    facts = dict(compiled.params) | given
    return explained(connection, str(compiled), facts)


def explained(connection: Connection, statement: str, facts: dict[str, object]) -> str:
    found = connection.exec_driver_sql(f"explain (analyze, timing off) {statement}", facts)
    return "\n".join(row[0] for row in found)


def rows_touched(plan: str) -> int:
    removed = sum(int(match[1]) for match in re.finditer(r"Rows Removed by Filter: (\d+)", plan))
    return int(sum(float(scan[2]) * int(scan[3]) for scan in SCAN.finditer(plan))) + removed


FILTERS = (
    AuditQuery(),
    AuditQuery(thread_id=ThreadId.of(nth(ThreadId, "d"))),
    AuditQuery(run_id=RunId.of(nth(RunId, "e"))),
    AuditQuery(actor_user_id=UserId.of(nth(UserId, "b"))),
    AuditQuery(actor_agent_id=AgentId.of(nth(AgentId, "c"))),
    AuditQuery(action="job.a7"),
    AuditQuery(resource_type="job", resource_id="job_7"),
    AuditQuery(action="job.a7", thread_id=ThreadId.of(nth(ThreadId, "d"))),
)


@pytest.mark.rule("R002-114", "R002-115", "R002-116", "R002-117")
@pytest.mark.parametrize("query", FILTERS, ids=lambda query: query.model_dump_json(exclude_unset=True))
@pytest.mark.parametrize("high", [None, ACTS // 2], ids=["first", "deep"])
def test_a_page_of_acts_costs_a_page(
    trail: Fleet,
    connection: Connection,
    query: AuditQuery,
    high: int | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(audit_trail, "LOOKED_AT", LOOKED_AT)
    admin, month = caller(trail), trail.one("select tableoid::regclass::text from audit_log limit 1")

    plan = plan_of(connection, with_seals(newest_acts(admin, query, window(admin, query, 0, high))))

    assert f"Seq Scan on {month}" not in plan, plan
    assert rows_touched(plan) <= 2 * LOOKED_AT, plan


@pytest.mark.parametrize(
    "query",
    [AuditQuery(action="run."), AuditQuery.model_validate({"decision": "block"}), AuditQuery(resource_id="none")],
    ids=lambda query: query.model_dump_json(exclude_unset=True),
)
@pytest.mark.parametrize("role", [Role.ADMIN, Role.VIEWER])
def test_what_no_index_knows_is_asked_of_a_bounded_number(
    trail: Fleet, connection: Connection, query: AuditQuery, role: Role, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_trail, "LOOKED_AT", LOOKED_AT)
    reader = caller(trail, role)

    plan = plan_of(connection, with_seals(newest_acts(reader, query, window(reader, query, 0, None))))

    assert rows_touched(plan) <= 3 * LOOKED_AT, plan


@pytest.mark.rule("R002-118")
def test_a_page_is_newest_first_whichever_way_the_seals_are_found(trail: Fleet, connection: Connection) -> None:
    """As long as a trail is young, the planner reads all seals into a hash and looks the acts up in it."""
    admin, query = caller(trail), AuditQuery(limit=500)
    for way in ("enable_nestloop", "enable_mergejoin"):
        connection.exec_driver_sql(f"set local {way} = off")

    page = connection.execute(with_seals(newest_acts(admin, query, window(admin, query, 0, None)))).mappings()

    seqs = [row["seq"] for row in page]
    assert len(seqs) == 501
    assert seqs == sorted(seqs, reverse=True)


def test_a_part_of_the_tail_costs_its_length(trail: Fleet, connection: Connection) -> None:
    acts = sealed_acts(caller(trail), AuditFilter(), ACTS // 2, ACTS // 2 + LOOKED_AT, 100)

    plan = plan_of(connection, acts)

    assert rows_touched(plan) <= 2 * LOOKED_AT, plan


def test_a_part_of_the_proof_costs_its_length(trail: Fleet, connection: Connection) -> None:
    facts = {"team_id": trail.team_id(), "after": ACTS // 2, "upto": ACTS // 2 + LOOKED_AT}
    for setting in LOOKED_UP:
        connection.exec_driver_sql(f"set local {setting}")

    plan = explained(connection, LINKS, facts)

    assert rows_touched(plan) <= 3 * LOOKED_AT, plan


def test_finding_what_is_not_sealed_never_walks_what_is(trail: Fleet, connection: Connection) -> None:
    plan = plan_of(connection, TEAMS_TO_SEAL)

    assert "audit_log_" in plan, plan
    assert rows_touched(plan) <= 10, plan


@pytest.mark.parametrize("bound", [SEQ_AT, POSITION_AT], ids=["seq", "position"])
def test_a_time_is_found_in_few_steps(trail: Fleet, connection: Connection, bound: TextClause) -> None:
    moment = trail.one("select created_at + interval '1 hour' from audit_log limit 1")

    plan = plan_of(connection, bound, team_id=trail.team_id(), moment=moment)

    assert rows_touched(plan) <= 60, plan
