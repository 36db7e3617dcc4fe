"""What each statement of the queue reads, with twenty thousand jobs waiting and as many ended."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Sequence
from uuid import UUID

import psycopg
import pytest
from psycopg.rows import DictRow

from agent_console.domain.ids import JobId, LaneId
from agent_console.domain.working import EventLine
from agent_console.repository.postgres.acting import Acting
from agent_console.repository.postgres.duties.queue import FOLD
from agent_console.repository.postgres.identify import by_token
from agent_console.repository.postgres.queue.held_jobs import REPORT, Report
from agent_console.repository.postgres.queue.lane_book import BEFORE_ALL, WALKED_AT_MOST, Routing
from agent_console.repository.postgres.queue.lane_book import LANES as LOOK
from agent_console.repository.postgres.queue.queue import TEND
from agent_console.repository.postgres.queue.turns import TAKE_TURNS, Finish, Turn, facts_of
from agent_console.repository.postgres.repository import Backend, PostgresRepository
from tests.conftest import FLEET_TEMPLATE
from tests.queue.crew import claim
from tests.queue.more_agents import AddedAgent, crowd
from tests.queue.plans import AGENTS, FILL_LANES, FITTING, LANES, Measured, Reads, fill
from tests.support.clusters import TemplateDatabase
from tests.support.fleet import Fleet

# One worker runs them all, so that the crowd is made once.
pytestmark = pytest.mark.xdist_group("queue plans")

TOGETHER = 64
# How many more than it wants a claim looks at in each lane, so as not to wait for others.
MORE = 32


class Crowded:
    def __init__(self, fleet: Fleet, agents: list[AddedAgent]) -> None:
        self.fleet, self.agents, self.team_id = fleet, agents, fleet.team_id()
        found = fleet.execute("select id from lanes order by key")
        self.all_lanes = [LaneId.of(UUID(str(lane))) for (lane,) in found]


@pytest.fixture(scope="module")
def filled(templates: TemplateDatabase) -> Iterator[Crowded]:
    templates.clone(FLEET_TEMPLATE, "crowded_queue")
    fleet = Fleet(templates.cluster.dsn("crowded_queue"))
    yield Crowded(fleet, fill(fleet))
    templates.drop("crowded_queue")


@pytest.fixture
def measured(filled: Crowded) -> Iterator[Measured]:
    session = Measured(filled.fleet.administration)
    yield session
    session.close()


def take(
    filled: Crowded,
    measured: Measured,
    lanes: Sequence[LaneId],
    finished: Sequence[DictRow] = (),
    count: int = TOGETHER,
) -> tuple[list[DictRow], Reads]:
    """The next turn of so many agents, each of which finishes what it had."""
    had = {row["turn"]: row for row in finished if row["job_id"] is not None}
    turns = [
        Turn(
            agent.id,
            agent.secret.hash,
            finish=finish_of(had[n]) if n in had else None,
            wants=1,
            lease=120,
            starts=True,
        )
        for n, agent in enumerate(filled.agents[:count], 1)
    ]
    floors = dict.fromkeys(lanes, BEFORE_ALL)
    return measured.reads(TAKE_TURNS, facts_of(Routing(filled.team_id), turns, floors))


def finish_of(row: DictRow) -> Finish:
    return Finish(JobId.of(row["job_id"]), row["attempt"], "succeeded", result={})


def nothing_whole(reads: Reads) -> None:
    assert {name: scans for name, scans in reads.whole.items() if scans and name in ("jobs", "job_events")} == {}


@pytest.mark.rule("U000-3", "U000-4", "U000-9")
@pytest.mark.parametrize("count", [1, TOGETHER])
@pytest.mark.parametrize("lanes", [FITTING, LANES])
def test_a_turn_reads_its_own_job_and_the_heads_of_its_lanes(
    filled: Crowded, measured: Measured, count: int, lanes: int
) -> None:
    fitting = filled.all_lanes[-lanes:]
    first, _ = take(filled, measured, fitting, count=count)

    second, reads = take(filled, measured, fitting, first, count=count)

    assert sum(row["job_id"] is not None for row in second) == count
    assert [row["finish"] for row in second] == ["ok"] * count
    nothing_whole(reads)
    # What it claimed the turn before lies dead at the head, until the transaction ends.
    looked_at = lanes * (count + MORE) + 2 * count
    assert reads.entries["jobs_claim_order_idx"] <= looked_at
    assert reads.rows["jobs"] <= looked_at + 20 * count
    # Whoever has just ended one has room for one: what it ended before is not walked to see that.
    assert reads.entries["jobs_held_idx"] == 0
    assert reads.rows["job_events"] == 0


def held(filled: Crowded, measured: Measured, count: int = TOGETHER) -> list[DictRow]:
    taken, _ = take(filled, measured, filled.all_lanes[-FITTING:], count=count)
    return [row for row in taken if row["job_id"] is not None]


@pytest.mark.parametrize("what", ["renew", "progress", "log"])
def test_a_report_reads_its_own_job(filled: Crowded, measured: Measured, what: str) -> None:
    reports = []
    for row in held(filled, measured):
        agent = filled.agents[row["turn"] - 1]
        report = Report(Acting(filled.team_id, agent.id, agent.secret.hash), JobId.of(row["job_id"]), 1)
        report.renews, report.starts = what == "renew", what != "renew"
        report.progress = {"percentage": 5} if what == "progress" else None
        report.events = [EventLine(message="x").model_dump(mode="json")] if what == "log" else None
        reports.append(report)
    said = json.dumps([report.facts(place) for place, report in enumerate(reports, 1)])

    answers, reads = measured.reads(REPORT, {"team_id": filled.team_id, "reports": said})

    assert [row["verdict"] for row in answers] == ["ok"] * TOGETHER
    nothing_whole(reads)
    assert reads.rows["jobs"] <= 6 * TOGETHER
    assert reads.entries["jobs_claim_order_idx"] == reads.entries["jobs_look_idx"] == 0
    assert reads.rows["job_events"] == 0


def test_tending_reads_what_is_due_and_nothing_else(filled: Crowded, measured: Measured) -> None:
    lost = held(filled, measured)
    measured.do("update jobs set look_at = now(), lease_expires_at = now() where status = 'running'")

    tended, reads = measured.reads(TEND, {"at_most": 500})
    again, idle = measured.reads(TEND, {"at_most": 500})

    assert (len(tended), len(again)) == (len(lost), 0)
    for each in (reads, idle):
        nothing_whole(each)
    assert reads.rows["jobs"] <= 8 * len(lost)
    assert idle.rows["jobs"] <= 2 * len(lost)


def test_a_look_reads_one_entry_of_each_lane(filled: Crowded, measured: Measured) -> None:
    found, reads = measured.reads(LOOK, {"team_id": filled.team_id})

    assert len(found) == LANES
    nothing_whole(reads)
    assert reads.entries["jobs_claim_order_idx"] == found[-1]["walked"] == LANES
    assert reads.rows["jobs"] <= 2 * LANES


def test_folding_reads_what_was_moved(filled: Crowded, measured: Measured) -> None:
    held(filled, measured)
    moved = measured.do("select count(*) as n from queue_moves")[0]["n"]

    folded, reads = measured.reads(FOLD, {"after": 0, "at_most": 5000})

    assert folded[0]["folded"] == moved > 0
    nothing_whole(reads)
    assert reads.rows["jobs"] == 0
    assert reads.rows["queue_moves"] <= 3 * moved


@pytest.fixture
async def busy(templates: TemplateDatabase, filled: Crowded) -> AsyncIterator[tuple[Crowded, Backend]]:
    """A copy in which jobs are really claimed."""
    templates.clone("crowded_queue", "busy_queue")
    copy = Crowded(Fleet(templates.cluster.dsn("busy_queue")), filled.agents)
    backend = Backend(copy.fleet.working)
    yield copy, backend
    await backend.close()
    templates.drop("busy_queue")


async def claim_many(copy: Crowded, backend: Backend, calls: int) -> int:
    agents = [PostgresRepository(backend, by_token(agent.secret)) for agent in copy.agents[:calls]]
    claimed = [await claim(agent, count=50) for agent in agents]
    return sum(len(each.jobs) for each in claimed)


async def test_a_busy_second_is_not_taken_for_a_held_snapshot(busy: tuple[Crowded, Backend]) -> None:
    copy, backend = busy

    claimed = await asyncio.gather(*(claim_many(copy, backend, 20) for _ in range(2)))
    await backend.queue.book.look(copy.team_id)

    assert sum(claimed) >= 1000
    assert backend.queue.book.page(copy.team_id).crowded is False


async def test_while_somebody_holds_an_old_snapshot_a_claim_begins_behind_what_was_claimed(
    busy: tuple[Crowded, Backend],
) -> None:
    copy, backend = busy
    copy.fleet.execute("update lanes set required_capabilities = '[]'")
    # One lane, so that all that was claimed lies at one head.
    copy.fleet.execute("update jobs set lane_id = %s where status = 'queued'", copy.all_lanes[0])
    copy.fleet.execute("vacuum analyze jobs")
    with psycopg.connect(copy.fleet.administration) as holding:
        holding.execute("set transaction isolation level repeatable read")
        holding.execute("select count(*) from teams")
        claimed = await claim_many(copy, backend, 100)
        await backend.queue.book.look(copy.team_id)
        routing = Routing(copy.team_id)
        floors = await backend.queue.book.waiting_lanes(routing)
        session = Measured(copy.fleet.administration)
        turn = Turn(copy.agents[200].id, wants=1, lease=120)
        _, behind = session.reads(TAKE_TURNS, facts_of(routing, [turn], floors))
        session.connection.rollback()
        _, from_the_front = session.reads(TAKE_TURNS, facts_of(routing, [turn], dict.fromkeys(floors, BEFORE_ALL)))
        session.close()

    assert claimed == 5000
    assert backend.queue.book.page(copy.team_id).crowded is True
    assert behind.entries["jobs_claim_order_idx"] <= 2 * MORE
    assert from_the_front.entries["jobs_claim_order_idx"] > WALKED_AT_MOST


# A million would be more like it, but any that are read show that all would be.
GROWN = """
    insert into jobs (team_id, id, lane_id, type, payload, status, agent_id, claimed_by, assigned_at, started_at,
                      lease_expires_at, finished_at)
    select a.team_id, new_id(), l.id, 'work', '{}', g.status, case when g.status <> 'queued' then a.id end,
           case when g.status = 'running' then a.name end, case when g.status <> 'queued' then now() end, now(),
           case when g.status = 'running' then now() + interval '1 hour' end,
           case when g.status = 'succeeded' then now() end
      from agents a
      join lanes l on l.team_id = a.team_id and l.key = lpad('1', 64, '0')
     cross join (select 'queued' from generate_series(1, 10)
                  union all select 'running' from generate_series(1, 5)
                  union all select 'succeeded' from generate_series(1, 30)) as g (status)
     where a.name like 'crowd-%'
"""


def test_a_plan_made_while_the_queue_was_empty_is_still_good_when_it_is_full(quiet: Fleet) -> None:
    agents = crowd(quiet, AGENTS, room=50)
    facts = {"team": quiet.team_id(), "lanes": 1, "fitting": 1}
    with psycopg.connect(quiet.administration) as connection:
        connection.execute(FILL_LANES, facts)
    empty = Crowded(quiet, agents)
    measured = Measured(quiet.administration)
    for _ in range(2):
        take(empty, measured, empty.all_lanes)

    measured.do(GROWN)
    first, _ = take(empty, measured, empty.all_lanes)
    second, stale = take(empty, measured, empty.all_lanes, first)
    # The database does this by itself within a minute, and every session plans anew.
    measured.do("analyze jobs, agents, agent_runtime")
    third, reads = take(empty, measured, empty.all_lanes, second)
    tended, tending = measured.reads(TEND, {"at_most": 500})
    measured.close()

    assert sum(row["job_id"] is not None for row in third) == TOGETHER
    for each in (stale, reads):
        nothing_whole(each)
        assert each.entries["jobs_held_idx"] <= 10 * TOGETHER
        assert each.entries["jobs_claim_order_idx"] <= 5 * TOGETHER
    assert reads.rows["jobs"] <= 40 * TOGETHER
    assert tended == []
    assert tending.rows["jobs"] == 0
