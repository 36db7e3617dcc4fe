"""Reading the audit trail, through both repositories: what was done, who sees it, and what can be taken away."""

import asyncio
import csv
import io
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from agent_console import __version__
from agent_console.domain.audit_export import AuditExport, ExportForm
from agent_console.domain.audit_trail import AuditAsked, AuditFilter, AuditQuery, AuditRow, AuditTail
from agent_console.domain.errors import Forbidden, Invalid, NotFound
from agent_console.domain.ids import AgentId, AuditId, RunId, ThreadId
from agent_console.domain.jobs import NewJob
from agent_console.domain.kinds import Decision
from agent_console.domain.records import Nothing
from agent_console.domain.team_settings import SettingChange
from agent_console.repository.operations import JOBS_CREATE
from agent_console.repository.operations.audit_trail import (
    AUDIT_EXPORT,
    AUDIT_GET,
    AUDIT_LIST,
    AUDIT_SEAL,
    AUDIT_SEAL_STATUS,
    AUDIT_TAIL,
)
from agent_console.repository.operations.people import SETTINGS_SET
from agent_console.repository.port import Repository, Topic
from agent_console.repository.postgres.audit import tail as audit_tail
from agent_console.repository.postgres.audit import trail as audit_trail
from agent_console.repository.postgres.repository import PostgresRepository, open_direct
from tests.repository.conftest import OPERATOR, VIEWER, OpenRepository
from tests.support.acting_agent import acting_agent
from tests.support.conversations import add_thread
from tests.support.fleet import Fleet
from tests.support.trail import act, old_act, seal

HOSTILE = ("=cmd|'/c calc'!A1", "\t=1+1", " @SUM(1)", "\x1b]52;c;x\x07", 'a"b,c\r\nd', "\uff1d1", "-1")
NOW = datetime.now(UTC)


def agents_act(fleet: Fleet, agent_id: AgentId) -> AuditId:
    made = fleet.one(
        "select append_audit(%s, 'agent', null, %s, 'atlas', 'job.create', 'job', 'job_9')",
        *(fleet.team_id(), agent_id),
    )
    return AuditId(hex=str(made))


async def ids(repository: Repository, **wanted: object) -> list[AuditId]:
    page = await repository.call(AUDIT_LIST, AuditQuery.model_validate(wanted))
    return [row.id for row in page.items]


@pytest.mark.rule("R002-118", "U002-23", "R002-80", "R002-84", "R002-89")
async def test_the_trail_is_listed_newest_first_by_every_filter(repository: Repository, fleet: Fleet) -> None:
    thread_id, run_id, ana, atlas = ThreadId.new(), RunId.new(), fleet.user_id("ana@example.com"), AgentId.new()
    plain = act(fleet)
    threads = act(fleet, thread_id=thread_id, resource="job_2", facts={"type": "report"})
    runs = act(fleet, thread_id=thread_id, run_id=run_id, action="run.create")
    blocked = act(fleet, action="a2a.delegate.blocked", decision="block", reason="no route")
    by_agent = agents_act(fleet, atlas)
    wanted: Mapping[tuple[tuple[str, object], ...], list[AuditId]] = {
        (): [by_agent, blocked, runs, threads, plain],
        (("thread_id", thread_id),): [runs, threads],
        (("run_id", run_id),): [runs],
        (("action", "job.create"),): [by_agent, threads, plain],
        (("action", "a2a."),): [blocked],
        (("action", "job.create"), ("thread_id", thread_id)): [threads],
        (("actor_user_id", ana),): [blocked, runs, threads, plain],
        (("actor_agent_id", atlas),): [by_agent],
        (("resource_type", "job"), ("resource_id", "job_2")): [threads],
        (("resource_id", "job_9"),): [by_agent],
        (("decision", Decision.BLOCK),): [blocked],
        (("since", NOW + timedelta(hours=1)),): [],
        (("until", NOW - timedelta(hours=1)),): [],
    }

    found = {filters: await ids(repository, **dict(filters)) for filters in wanted}
    one = await repository.call(AUDIT_GET, AuditAsked(audit_id=threads))

    assert found == wanted
    assert (one.thread_id, one.resource_id, one.metadata) == (thread_id, "job_2", {"type": "report"})
    assert (one.actor, one.actor_user_id, one.decision) == ("Ana Costa", ana, None)


@pytest.mark.rule("R002-118", "U002-23")
async def test_pages_go_on_where_the_one_before_ended_whatever_comes_meanwhile(
    repository: Repository, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_trail, "LOOKED_AT", 3)
    acts = [act(fleet, decision="block" if number == 0 else None) for number in range(7)]

    seen: list[AuditRow] = []
    rare: list[AuditId] = []
    for query, rows in ((AuditQuery(limit=2), seen), (AuditQuery(decision=Decision.BLOCK), None)):
        asked: AuditQuery | None = query
        while asked is not None:
            page = await repository.call(AUDIT_LIST, asked)
            rows.extend(page.items) if rows is not None else rare.extend(row.id for row in page.items)
            act(fleet)
            asked = None if page.next is None else query.model_copy(update={"after": page.next})

    assert [row.id for row in seen] == acts[::-1]
    assert rare == [acts[0]], "however few match, each page looks at so many and the next goes on"
    with pytest.raises(Invalid):
        await repository.call(AUDIT_LIST, AuditQuery(after="aud_1"))


@pytest.mark.rule("U002-23")
async def test_without_a_time_only_the_last_seven_days_are_listed(repository: Repository, fleet: Fleet) -> None:
    old = old_act(fleet, NOW - timedelta(days=8))
    recent = old_act(fleet, NOW - timedelta(days=6))
    new = act(fleet)

    by_default = await ids(repository)
    of_all_time = await ids(repository, since=NOW - timedelta(days=9))
    before = await ids(repository, until=NOW - timedelta(days=7))

    assert (by_default, of_all_time, before) == ([new, recent], [new, recent, old], [old])
    assert (AuditQuery().limit, AuditQuery.model_json_schema()["properties"]["limit"]["maximum"]) == (100, 500)


@pytest.mark.rule("U002-3", "U002-2")
async def test_everyone_sees_their_own_acts_and_those_of_threads_they_may_read(
    open_repository: OpenRepository, fleet: Fleet
) -> None:
    admin, operator, viewer = [await open_repository(who) for who in ("ana@example.com", OPERATOR, VIEWER)]
    elsewhere, nowhere = act(fleet, thread_id=add_thread(fleet, VIEWER)), act(fleet)
    shared = act(fleet, thread_id=add_thread(fleet, OPERATOR))
    fleet.execute("update users set role = 'admin' where email = %s", OPERATOR)
    await operator.call(SETTINGS_SET, SettingChange(name="max_hops", value=3))
    fleet.execute("update users set role = 'operator' where email = %s", OPERATOR)
    seal(fleet)

    everything, own = await ids(admin), await ids(operator)

    assert everything[1:] == [shared, nowhere, elsewhere]
    assert own == [everything[0], shared]
    assert await ids(viewer) == [elsewhere]
    assert [row.id for row in (await viewer.call(AUDIT_TAIL, AuditTail(after_position=0))).items] == [elsewhere]
    assert (await operator.call(AUDIT_GET, AuditAsked(audit_id=own[0]))).user_agent is not None
    assert (await operator.call(AUDIT_EXPORT, AuditExport())).rows == 2
    with pytest.raises(NotFound):
        await viewer.call(AUDIT_GET, AuditAsked(audit_id=nowhere))
    async with acting_agent(admin, fleet) as atlas:
        with pytest.raises(Forbidden):
            await atlas.call(AUDIT_LIST, AuditQuery())


@pytest.mark.rule("U002-2")
async def test_the_trail_of_another_team_is_not_there(open_repository: OpenRepository, fleet: Fleet) -> None:
    other = fleet.add_team("other")
    ours, theirs = await open_repository(), await open_repository("admin@other.example", "other")
    one = act(fleet)
    seal(fleet)
    seal(fleet, other)

    with pytest.raises(NotFound) as refused:
        await theirs.call(AUDIT_GET, AuditAsked(audit_id=one))
    with pytest.raises(NotFound) as missing:
        await theirs.call(AUDIT_GET, AuditAsked(audit_id=AuditId.new()))

    assert (await ids(ours), await ids(theirs)) == ([one], [])
    assert (await theirs.call(AUDIT_TAIL, AuditTail(after_position=0))).items == ()
    assert refused.value.hint == missing.value.hint


@pytest.mark.rule("R002-88")
async def test_where_a_person_acted_from_is_kept(repository: Repository, fleet: Fleet) -> None:
    await repository.call(SETTINGS_SET, SettingChange(name="max_hops", value=3))

    (row,) = (await repository.call(AUDIT_LIST, AuditQuery())).items

    direct = isinstance(repository, PostgresRepository)
    expected = (None, f"agent-console {__version__}") if direct else ("127.0.0.1", f"agent-console/{__version__}")
    assert (row.ip, row.user_agent) == expected
    assert row.actor_user_id == fleet.user_id("ana@example.com")


async def test_a_tail_goes_on_after_every_position_and_skips_nobody(
    repository: Repository, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_tail, "LOOKED_AT", 2)
    first = act(fleet, decision="block")
    with psycopg.connect(fleet.administration) as slow:
        late = slow.execute(
            "select append_audit(%s, 'system', null, null, 'x', 'job.create', 'job', 'late')", (fleet.team_id(),)
        ).fetchone()
        quick = act(fleet)
        seal(fleet)
        before = await repository.call(AUDIT_TAIL, AuditTail(after_position=0))
        slow.commit()
    last = act(fleet, decision="block")
    seal(fleet)

    after = await repository.call(AUDIT_TAIL, AuditTail(after_position=before.position))
    rest = await repository.call(AUDIT_TAIL, AuditTail(after_position=after.position))
    newest = await repository.call(AUDIT_TAIL, AuditTail(limit=1))
    none_yet = await repository.call(AUDIT_TAIL, AuditTail(after_position=0, decision=Decision.ERROR))

    assert late is not None
    assert [row.id for row in before.items] == [first]
    assert [row.id for row in (*after.items, *rest.items)] == [late[0], quick, last]
    assert [row.position for row in (*after.items, *rest.items)] == [2, 3, 4]
    assert (after.next, rest.next) == ("3", None)
    assert [row.id for row in newest.items] == [last]
    assert (none_yet.items, none_yet.position, none_yet.head, none_yet.next) == ((), 2, 4, "2")


async def test_a_follower_is_told_as_soon_as_something_is_sealed(repository: Repository, fleet: Fleet) -> None:
    act(fleet)
    seal(fleet)
    head = (await repository.call(AUDIT_SEAL, Nothing())).position
    follow = AuditTail(after_position=head, wait_seconds=25.0, decision=Decision.BLOCK)

    following = asyncio.create_task(repository.call(AUDIT_TAIL, follow))
    await asyncio.sleep(0)
    act(fleet)
    wanted = act(fleet, decision="block")
    seal(fleet)
    page = await following
    nothing = await repository.call(AUDIT_TAIL, AuditTail(after_position=page.position, wait_seconds=0.01))

    assert [row.id for row in page.items] == [wanted]
    assert nothing.items == ()


async def test_who_stops_following_while_others_change_things_leaves_nothing_behind(fleet: Fleet) -> None:
    act(fleet)
    seal(fleet)
    async with open_direct(fleet.working, user="ana@example.com") as repository:
        head = (await repository.call(AUDIT_SEAL, Nothing())).position
        follow = AuditTail(after_position=head, wait_seconds=25.0, decision=Decision.BLOCK)
        changes = repository.changes()
        await anext(changes)
        before = asyncio.all_tasks()

        following = asyncio.create_task(repository.call(AUDIT_TAIL, follow))
        await repository.call(JOBS_CREATE, NewJob(type="work", payload={}))
        while (await anext(changes)).topic is not Topic.JOBS:
            pass
        await asyncio.sleep(0.05)
        following.cancel()
        with pytest.raises(asyncio.CancelledError):
            await following
        left = [task for task in asyncio.all_tasks() - before if "anext" in repr(task)]

        assert left == []
        await changes.aclose()


async def test_how_the_sealing_goes(repository: Repository, fleet: Fleet) -> None:
    for _ in range(3):
        act(fleet)
    seal(fleet)
    before = await repository.call(AUDIT_SEAL, Nothing())
    with psycopg.connect(fleet.administration) as slow:
        slow.execute("select pg_current_xact_id()")
        act(fleet)
        status = await repository.call(AUDIT_SEAL_STATUS, Nothing())

    assert (before.position, before.team, before.team_id) == (3, "example", fleet.team_id())
    assert (status.position, status.hash) == (before.position, before.hash)
    assert status.unsealed == 1
    assert 0 <= status.lag_seconds < 600
    assert (len(status.months), status.checkpoints) == (4, ())
    assert status.at - status.kept_since == timedelta(days=90)


async def exported(repository: Repository, **wanted: object) -> str:
    asked, text = AuditExport.model_validate(wanted), ""
    while True:
        part = await repository.call(AUDIT_EXPORT, asked)
        text += part.text
        if part.next is None:
            return text
        asked = asked.model_copy(update={"after_position": int(part.next)})


async def test_an_export_is_whole_and_no_cell_of_it_is_a_formula(repository: Repository, fleet: Fleet) -> None:
    made = [act(fleet, reason=words, resource=words, facts={"type": words}) for words in HOSTILE]
    seal(fleet)

    lines = [json.loads(line) for line in (await exported(repository, limit=2)).splitlines()]
    table = list(csv.DictReader(io.StringIO(await exported(repository, limit=2, format=ExportForm.CSV))))
    later = await exported(repository, since=NOW + timedelta(hours=2))

    assert [(line["id"], line["reason"], line["position"]) for line in lines] == [
        (str(audit_id), words, place) for place, (audit_id, words) in enumerate(zip(made, HOSTILE, strict=True), 1)
    ]
    assert [row["id"] for row in table] == [str(audit_id) for audit_id in made]
    assert table[0].keys() == AuditRow.model_fields.keys()
    cells = [cell for row in table for cell in row.values()]
    assert not [cell for cell in cells if cell.lstrip().startswith(("=", "+", "-", "@", "\uff1d"))]
    assert all(cell.isprintable() for cell in cells)
    assert table[0]["reason"] == "'" + HOSTILE[0]
    assert later == ""


def test_a_filter_ends_after_it_begins() -> None:
    with pytest.raises(ValueError, match="must not lie after"):
        AuditFilter(since=NOW, until=NOW - timedelta(seconds=1))
