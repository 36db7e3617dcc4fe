"""What a thread costs those who read it: as much as they read, whatever was said there and elsewhere."""

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from uuid import UUID

import pytest
from sqlalchemy import Connection, NullPool, Select, TextClause, create_engine, text

from agent_console.database.address import sqlalchemy_url
from agent_console.domain.identity import AuthSource, Caller
from agent_console.domain.ids import RunId, ThreadId
from agent_console.domain.messages import MessageQuery
from agent_console.domain.permissions import Role
from agent_console.domain.threads import Archived, ThreadQuery, WhichThreads
from agent_console.repository.postgres.threads.lists import newest_threads, shown_threads
from agent_console.repository.postgres.threads.message_search import FOUND, lexeme_of
from agent_console.repository.postgres.threads.messages import FIRST_AT, Position, Way, page_of_messages
from agent_console.repository.postgres.threads.participants import shown_participants
from tests.conftest import FLEET_TEMPLATE
from tests.repository.conftest import ADMIN, OPERATOR
from tests.support.clusters import TemplateDatabase
from tests.support.conversations import OWNER, add_run, add_thread, say, say_much
from tests.support.fleet import Fleet

# One worker runs them all, so that the crowd is made once.
pytestmark = pytest.mark.xdist_group("message_plans")

MESSAGES = 10_000
THREADS = 20_000
PAGE = 50

NTH_ID = "('01990000-0000-7000-{}000-' || lpad(to_hex(n), 12, '0'))::uuid"
# All but every hundredth are archived, and every second is shared; the owner takes part in all of them.
FILL_THREADS = f"""
    insert into threads (team_id, id, visibility, created_by_user_id, archived_at)
    select %s, {NTH_ID.format("a")}, case when n %% 2 = 0 then 'shared' else 'private' end, %s,
           case when n %% 100 > 0 then now() end
      from generate_series(1, {THREADS}) as n
"""
FILL_PARTICIPANTS = f"""
    insert into thread_participants (team_id, id, thread_id, participant_type, user_id, thread_archived)
    select %s, {NTH_ID.format("b")}, {NTH_ID.format("a")}, 'human', %s, n %% 100 > 0
      from generate_series(1, {THREADS}) as n
"""


class Crowd(Fleet):
    """A long thread, a short one in which the same words are said, and many threads of one person."""

    @property
    def long(self) -> ThreadId:
        return self._named("long")

    @property
    def short(self) -> ThreadId:
        return self._named("short")

    def _named(self, title: str) -> ThreadId:
        return ThreadId.of(UUID(str(self.one("select id from threads where title = %s", title))))


@pytest.fixture(scope="module")
def crowd(templates: TemplateDatabase) -> Iterator[Crowd]:
    """Made once: nothing here changes it."""
    templates.clone(FLEET_TEMPLATE, "message_crowd")
    fleet = Crowd(templates.cluster.dsn("message_crowd"))
    fleet.execute(FILL_THREADS, fleet.team_id(), fleet.user_id(OWNER))
    fleet.execute(FILL_PARTICIPANTS, fleet.team_id(), fleet.user_id(OWNER))
    say_much(fleet, add_thread(fleet, title="long"), MESSAGES, "the pump of line")
    for number in range(5):
        say(fleet, add_thread(fleet, title="short") if number == 0 else fleet.short, content=f"pump {number}")
    run_id = add_run(fleet, fleet.long, ended=True)
    fleet.execute("update messages set run_id = %s where thread_id = %s and seq %% 10 = 0", run_id, fleet.long)
    fleet.execute("vacuum analyze")
    yield fleet
    templates.drop("message_crowd")


@pytest.fixture
def connection(crowd: Crowd) -> Iterator[Connection]:
    with create_engine(sqlalchemy_url(crowd.administration), poolclass=NullPool).connect() as connection:
        yield connection


def touched(
    connection: Connection,
    question: Select[tuple[object, ...]] | TextClause,
    facts: Mapping[str, object],
    table: str,
) -> tuple[float, set[str]]:
    """Rows that scans of the table gave or threw away, and the names of the indexes; never the whole table."""
    compiled = question.compile(connection, compile_kwargs={"render_postcompile": True})
    asked = f"explain (analyze, timing off, format json) {compiled}"
    ((told,),) = connection.exec_driver_sql(asked, {**compiled.params, **facts}).all()
    plan = (json.loads(told) if isinstance(told, str) else told)[0]["Plan"]
    rows, indexes = 0.0, set()
    for node in _nodes(plan):
        if node.get("Relation Name") == table:
            assert node["Node Type"] != "Seq Scan", told
            thrown_away = sum(
                float(str(node.get(f"Rows Removed by {why}", 0))) for why in ("Filter", "Index Recheck")
            )
            rows += (float(str(node["Actual Rows"])) + thrown_away) * float(str(node["Actual Loops"]))
        if name := node.get("Index Name"):
            indexes.add(str(name))
    return rows, indexes


def _nodes(node: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
    yield node
    children = node.get("Plans", [])
    assert isinstance(children, list)
    for child in children:
        yield from _nodes(child)


@pytest.mark.rule("R002-104", "R002-107")
@pytest.mark.parametrize("way", Way)
@pytest.mark.parametrize("depth", [0.0, 0.5, 1.0], ids=["oldest", "middle", "newest"])
def test_a_page_of_messages_costs_a_page(crowd: Crowd, connection: Connection, way: Way, depth: float) -> None:
    seq = crowd.one(
        "select seq from messages where thread_id = %s order by seq offset %s limit 1",
        *(crowd.long, int(depth * (MESSAGES - 1))),
    )
    assert isinstance(seq, int)

    wanted = page_of_messages(crowd.team_id(), MessageQuery(thread_id=crowd.long), Position(way, seq))
    rows, indexes = touched(connection, wanted, {}, "messages")

    assert rows <= 2 * PAGE
    assert "messages_thread_seq_idx" in indexes


@pytest.mark.rule("R002-106", "R002-107")
def test_the_messages_of_a_run_are_looked_up_by_it(crowd: Crowd, connection: Connection) -> None:
    run_id = RunId.of(UUID(str(crowd.one("select run_id from messages where run_id is not null limit 1"))))
    query = MessageQuery(thread_id=crowd.long, run_id=run_id)

    rows, indexes = touched(
        connection, page_of_messages(crowd.team_id(), query, Position(Way.BEFORE)), {}, "messages"
    )

    assert rows <= 2 * PAGE
    assert "messages_run_idx" in indexes


@pytest.mark.rule("R002-105")
def test_a_jump_to_a_time_looks_at_one_message(crowd: Crowd, connection: Connection) -> None:
    at = datetime(2030, 1, 1, 0, 0, 10, tzinfo=UTC)
    facts = {"team_id": crowd.team_id(), "thread_id": crowd.long, "at": at}

    rows, indexes = touched(connection, FIRST_AT, facts, "messages")

    assert rows <= 2
    assert indexes == {"messages_thread_created_idx"}


def test_a_search_looks_at_the_hits_of_its_thread_only(crowd: Crowd, connection: Connection) -> None:
    def search(thread_id: ThreadId, words: str) -> tuple[float, set[str]]:
        facts: dict[str, object] = {"team_id": crowd.team_id(), "thread_id": thread_id}
        facts["thread"] = lexeme_of(crowd.team_id(), thread_id)
        facts |= {"words": words, "before_seq": None, "limit": PAGE + 1, "system": "x"}
        return touched(connection, FOUND, facts, "messages")

    common_elsewhere, _ = search(crowd.short, "pump")
    common_here, _ = search(crowd.long, "pump")
    rare, by = search(crowd.long, "pump 7000")

    assert (common_elsewhere, common_here, rare) == (5, PAGE + 1, 1)
    assert "messages_search_idx" in by


def caller(crowd: Crowd, email: str, role: Role) -> Caller:
    return Caller(
        team_id=crowd.team_id(),
        team="example",
        user_id=crowd.user_id(email),
        name=email,
        role=role,
        auth_source=AuthSource.DATABASE,
    )


@pytest.mark.parametrize("which", WhichThreads)
@pytest.mark.parametrize("archived", Archived)
@pytest.mark.parametrize(("email", "role"), [(ADMIN, Role.ADMIN), (OPERATOR, Role.OPERATOR)])
def test_a_list_of_threads_costs_a_page_of_each_way_to_be_let_in(
    crowd: Crowd, connection: Connection, which: WhichThreads, archived: Archived, email: str, role: Role
) -> None:
    who = caller(crowd, email, role)
    after = crowd.one(f"select {NTH_ID.format('a')} from (select {THREADS} - 500 as n) as n")
    query = ThreadQuery(which=which, archived=archived, after=str(ThreadId.of(UUID(str(after)))))
    wanted = shown_threads(who, newest_threads(who, query).subquery())

    looked_at = sum(touched(connection, wanted, {}, table)[0] for table in ("threads", "thread_participants"))

    assert looked_at <= 8 * (PAGE + 1)


def test_participants_come_in_the_order_of_their_index(crowd: Crowd, connection: Connection) -> None:
    wanted = shown_participants(crowd.team_id(), crowd.long).limit(PAGE + 1)

    _, indexes = touched(connection, wanted, {}, "thread_participants")

    assert "thread_participants_thread_idx" in indexes


def test_writing_to_a_thread_touches_no_index_of_it(crowd: Crowd, connection: Connection) -> None:
    """Else every message would write to all of them."""
    indexed = connection.execute(
        text(
            "select distinct a.attname from pg_index i join pg_attribute a"
            " on a.attrelid = i.indrelid and a.attnum = any(i.indkey::smallint[])"
            " where i.indrelid = 'threads'::regclass"
        )
    )

    assert "updated_at" not in set(indexed.scalars())
