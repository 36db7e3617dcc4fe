"""What is done while time passes: silence noticed, jobs given back, unused agents put to rest."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace

import psycopg
import pytest
from psycopg.rows import TupleRow
from sqlalchemy import text

from agent_console.domain.agents import OFFLINE_AFTER_SECONDS, AgentAsked
from agent_console.domain.errors import ConsoleError
from agent_console.domain.ids import AgentId, SessionId, TeamId, UserId
from agent_console.domain.presence import HEARTBEAT_SECONDS
from agent_console.domain.records import Nothing
from agent_console.domain.states import Lifecycle, Presence
from agent_console.repository.operations import AGENTS_GET, POOL_STATUS
from agent_console.repository.postgres.duties import silence as duty_silence
from agent_console.repository.postgres.duties.declared import for_each_team, in_turn
from agent_console.repository.postgres.duties.queue import TEND_JOBS
from agent_console.repository.postgres.duties.rest import LET_REST
from agent_console.repository.postgres.duties.rounds import duties_done
from agent_console.repository.postgres.duties.silence import NOTICE_SILENCE
from agent_console.repository.postgres.duties.silence import SILENT as SILENT_RULE
from agent_console.repository.postgres.identify import by_name
from agent_console.repository.postgres.queue.release import RETRY_AFTER_SECONDS, RETRY_SPREAD
from agent_console.repository.postgres.repository import Backend, PostgresRepository
from tests.support.fleet import Fleet

SILENT = "update agent_runtime r set last_heartbeat_at = now() - interval '91 seconds' from agents a"
OF = " where a.team_id = r.team_id and a.id = r.agent_id and a.name = %s"

# What the fleet did lies in its own time, which is to come.
WORKED_LONG_AGO = "update jobs set finished_at = now() - interval '1 day' where finished_at is not null"

OF_AGENTS = (NOTICE_SILENCE, LET_REST)


@pytest.fixture
async def backend(fleet: Fleet) -> AsyncIterator[Backend]:
    backend = Backend(fleet.working)
    yield backend
    await backend.close()


@pytest.fixture
def operator(backend: Backend) -> PostgresRepository:
    return PostgresRepository(backend, by_name("example", None))


async def look_after_agents(backend: Backend) -> None:
    for duty in OF_AGENTS:
        await duty.round(backend)


def jobs_of(fleet: Fleet, *ids: object) -> list[tuple[object, ...]]:
    return fleet.execute(
        "select status, agent_id, claimed_by, lease_expires_at, progress, attempt, next_attempt_at - now() between"
        " interval '5 seconds' and interval '35 seconds' as waits from jobs where id = any(%s) order by id",
        list(ids),
    )


@pytest.mark.rule("R000-30", "R000-31", "R000-86", "R001-14", "U000-6")
async def test_a_silent_agent_goes_offline_and_its_jobs_go_back_together(
    backend: Backend, operator: PostgresRepository, fleet: Fleet
) -> None:
    (job,) = fleet.execute("select id from jobs where claimed_by = 'atlas'")
    fleet.execute(SILENT + OF, "atlas")

    await look_after_agents(backend)

    atlas = await operator.call(AGENTS_GET, AgentAsked(agent_id=fleet.agent_id("atlas")))
    assert fleet.one("select presence from agent_runtime where agent_id = %s", atlas.id) == "offline"
    assert (atlas.status, atlas.current_jobs, atlas.uptime_seconds) == (Presence.OFFLINE, 0, None)
    assert jobs_of(fleet, *job) == [("queued", None, None, None, None, 2, True)]
    told = fleet.execute("select message, level, attempt from job_events where job_id = %s order by seq", *job)
    assert told[-1] == ("running to queued: no heartbeat for 90 s", "warn", 1)


@pytest.mark.rule("U000-6")
def test_a_lost_agents_job_can_be_anothers_within_two_minutes() -> None:
    noticed = OFFLINE_AFTER_SECONDS + NOTICE_SILENCE.every_seconds
    waited = RETRY_AFTER_SECONDS * (1 + RETRY_SPREAD) + TEND_JOBS.every_seconds

    assert noticed + waited < 120


async def test_those_who_are_heard_keep_what_they_have(
    backend: Backend, operator: PostgresRepository, fleet: Fleet
) -> None:
    held = await operator.call(POOL_STATUS, Nothing())
    fleet.execute("update agent_runtime set last_heartbeat_at = now() - interval '70 seconds'")

    await look_after_agents(backend)

    assert (await operator.call(POOL_STATUS, Nothing())).model_dump(exclude={"at"}) == held.model_dump(
        exclude={"at"}
    )


@pytest.mark.rule("U000-6")
async def test_the_last_try_of_a_lost_agent_is_a_dead_letter(backend: Backend, fleet: Fleet) -> None:
    fleet.execute("update jobs set attempt = 3 where claimed_by = 'atlas'")
    fleet.execute(SILENT + OF, "atlas")

    await look_after_agents(backend)

    assert fleet.execute(
        "select attempt, error_message, finished_at is not null from jobs"
        " where status = 'dead_letter' and error_code = 'agent_lost'"
    ) == [(3, "no heartbeat for 90 s", True)]


async def test_a_job_that_was_asked_to_stop_ends_cancelled(backend: Backend, fleet: Fleet) -> None:
    held = fleet.execute(
        "select id, cancel_requested_at is not null from jobs where claimed_by = 'ember' order by id"
    )
    fleet.execute(SILENT + OF, "ember")

    await look_after_agents(backend)

    ended = {row[0]: row[1] for row in fleet.execute("select id, status from jobs")}
    assert {cancelling: ended[job] for job, cancelling in held} == {False: "queued", True: "cancelled"}


@pytest.mark.rule("R004-4")
async def test_a_lost_hosted_agent_is_in_error_and_says_why(
    backend: Backend, operator: PostgresRepository, fleet: Fleet
) -> None:
    atlas, beacon = fleet.agent_id("atlas"), fleet.agent_id("beacon")
    fleet.execute("update agent_runtime set lifecycle = 2 where agent_id = %s", atlas)
    fleet.execute("update agent_runtime set lifecycle = 4 where agent_id = %s", beacon)
    fleet.execute(SILENT + " where a.team_id = r.team_id and a.id = r.agent_id and r.lifecycle is not null")

    await look_after_agents(backend)

    lost = await operator.call(AGENTS_GET, AgentAsked(agent_id=atlas))
    asleep = await operator.call(AGENTS_GET, AgentAsked(agent_id=beacon))
    assert (lost.lifecycle, lost.error_message) == (Lifecycle.ERROR, "no heartbeat for 90 s")
    assert (asleep.lifecycle, asleep.error_message, asleep.status) == (
        Lifecycle.HIBERNATING, None, Presence.OFFLINE,
    )  # fmt: skip
    assert fleet.execute("select actor_type, action, resource_id, metadata::text from audit_log") == [
        ("system", "agent.move", str(atlas), json.dumps({"to": "error", "from": "running"}))
    ]


async def test_several_processes_do_it_once(backend: Backend, fleet: Fleet) -> None:
    other = Backend(fleet.working)
    fleet.execute("update agent_runtime set last_heartbeat_at = now() - interval '91 seconds'")

    await asyncio.gather(*(look_after_agents(each) for each in (backend, other, backend, other)))
    await asyncio.gather(look_after_agents(backend), look_after_agents(other))
    await other.close()

    assert fleet.one("select count(*) from agent_runtime where presence in ('online', 'error')") == 0
    assert fleet.one("select count(*) from jobs where status in ('assigned', 'running')") == 0
    assert fleet.one("select max(attempt) from jobs where status = 'queued'") == 2
    assert fleet.one("select count(*) from job_events where level = 'warn'") == 6


async def test_who_finds_another_at_it_leaves_it_to_him(backend: Backend, fleet: Fleet) -> None:
    other = Backend(fleet.working)
    fleet.execute(SILENT + OF, "atlas")

    async with in_turn(other, NOTICE_SILENCE.name) as his:
        meanwhile = await NOTICE_SILENCE.round(backend)
        async with in_turn(backend, LET_REST.name) as another_duty:
            pass
    afterwards = await NOTICE_SILENCE.round(backend)
    await other.close()

    assert his is not None
    assert another_duty is not None, "each duty has its own turn"
    assert (meanwhile, afterwards) == (None, 1)


async def test_more_silent_agents_than_one_batch_are_all_swept(
    backend: Backend, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duty_silence, "BATCH", 2)
    fleet.execute("update agent_runtime set last_heartbeat_at = now() - interval '91 seconds'")

    noticed = await NOTICE_SILENCE.round(backend)

    assert noticed == 7
    assert fleet.one("select count(*) from agent_runtime where presence in ('online', 'error')") == 0


async def test_an_agent_that_is_being_written_is_not_silent_and_holds_up_nobody(
    backend: Backend, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duty_silence, "BATCH", 1)
    fleet.execute("update agent_runtime set last_heartbeat_at = now() - interval '91 seconds'")
    atlas = fleet.agent_id("atlas")

    with psycopg.connect(fleet.administration) as beating:
        beating.execute("update agent_runtime set last_heartbeat_at = now() where agent_id = %s", (atlas,))
        noticed = await NOTICE_SILENCE.round(backend)

    left = fleet.execute("select agent_id from agent_runtime where presence in ('online', 'error')")
    assert (noticed, left) == (6, [(atlas,)])
    assert fleet.one("select count(*) from jobs where claimed_by = 'atlas'") == 1


async def test_the_silent_agents_of_every_team_are_noticed(backend: Backend, fleet: Fleet) -> None:
    fleet.execute("update agent_runtime set last_heartbeat_at = now() - interval '91 seconds'")
    other = fleet.add_team("other")
    owner = fleet.user_id("admin@other.example")
    system_user, agent = UserId.new(), AgentId.new()
    fleet.execute(
        "insert into users (team_id, id, kind, full_name) values (%s, %s, 'system', 'Agent')", other, system_user
    )
    fleet.execute(
        "insert into agents (team_id, id, name, owner_user_id, system_user_id, created_by_user_id, worker_id,"
        " api_key_hash, api_key_prefix) values (%s, %s, 'zoe', %s, %s, %s, 'zoe', repeat('0', 64), 'agt_key_')",
        *(other, agent, owner, system_user, owner),
    )
    fleet.execute(
        "insert into agent_runtime (team_id, agent_id, presence, last_heartbeat_at)"
        " values (%s, %s, 'online', now() - interval '91 seconds')",
        *(other, agent),
    )

    noticed = await NOTICE_SILENCE.round(backend)

    assert noticed == 8
    assert fleet.one("select presence from agent_runtime where agent_id = %s", agent) == "offline"


async def test_what_fails_for_one_team_is_told_when_the_others_had_their_turn(
    backend: Backend, fleet: Fleet
) -> None:
    teams = sorted([fleet.team_id(), fleet.add_team("other")])
    tended: list[TeamId] = []

    async def step(backend: Backend, team_id: TeamId) -> int | None:
        async with in_turn(backend, "silence") as connection:
            assert connection is not None
            await connection.execute(text("select 1 / cast(:one as integer)"), {"one": int(team_id != teams[0])})
        tended.append(team_id)
        return 0

    with pytest.raises(ConsoleError):
        await for_each_team(backend, text("select id as team_id from teams order by id"), step, 10)

    assert tended == teams[1:]


def looked_at(connection: psycopg.Connection[TupleRow], team_id: TeamId) -> tuple[int, int]:
    """How many agents the search for silent ones finds, and how many it looks at and lets go, by the index."""
    connection.execute("set local enable_seqscan = off")
    connection.execute("set local enable_bitmapscan = off")
    question = f"explain (analyze, format json) select from agent_runtime r where r.team_id = %s and {SILENT_RULE}"
    ((plan,),) = connection.execute(question.encode(), (team_id,)).fetchall()
    scan = plan[0]["Plan"]
    assert scan["Index Name"] == "agent_runtime_heard_idx"
    return int(scan["Actual Rows"]), int(scan.get("Rows Removed by Filter", 0))


@pytest.mark.rule("R000-29", "R000-30")
def test_who_beats_as_it_should_is_never_looked_at(fleet: Fleet) -> None:
    """In one transaction, for which time stands still."""
    beating = "update agent_runtime set last_heartbeat_at = now() - %s * interval '1 second'"
    with psycopg.connect(fleet.administration) as connection:
        connection.execute(beating, (HEARTBEAT_SECONDS,))
        healthy = looked_at(connection, fleet.team_id())
        connection.execute(beating + " where presence = 'error'", (OFFLINE_AFTER_SECONDS + 1,))
        one_silent = looked_at(connection, fleet.team_id())
        connection.execute(beating, (OFFLINE_AFTER_SECONDS,))
        all_late = looked_at(connection, fleet.team_id())

    assert healthy == (0, 0)
    assert one_silent == (1, 0)
    assert all_late == (0, 7), "silent is who was not heard for more than 90 s"


@pytest.mark.rule("U004-10")
async def test_unused_agents_go_idle_and_then_hibernate(backend: Backend, fleet: Fleet) -> None:
    def lifecycle(agent_id: AgentId) -> object:
        return fleet.one("select lifecycle from agent_runtime where agent_id = %s", agent_id)

    def rest(name: str, state: int, seconds: int) -> AgentId:
        agent_id = fleet.agent_id(name)
        fleet.execute(
            "update agent_runtime set lifecycle = %s, lifecycle_changed_at = now() - %s * interval '1 second',"
            " last_used_at = null where agent_id = %s",
            *(state, seconds, agent_id),
        )
        return agent_id

    fleet.execute(WORKED_LONG_AGO)
    early, due, working = rest("beacon", 2, 200), rest("fathom", 2, 400), rest("atlas", 2, 9999)
    awake, asleep = rest("gantry", 3, 1700), rest("harbor", 3, 1801)

    await look_after_agents(backend)

    assert [lifecycle(agent) for agent in (early, due, working, awake, asleep)] == [2, 3, 2, 3, 4]
    since = "select extract(epoch from now() - lifecycle_changed_at)::int from agent_runtime where agent_id = %s"
    assert fleet.one(since, due) in range(100, 200), "idle since it was due, not since somebody looked"
    assert fleet.one("select count(*) from audit_log where actor_type = 'system' and action = 'agent.move'") == 2


@pytest.mark.rule("U004-10")
@pytest.mark.parametrize(("state", "seconds"), [(2, 300), (3, 1800)])
async def test_the_timer_runs_from_the_end_of_the_last_job(
    backend: Backend, fleet: Fleet, state: int, seconds: int
) -> None:
    def ended(ago: int) -> None:
        fleet.execute("update agent_runtime set last_used_at = null")
        fleet.execute(
            "update jobs set finished_at = now() - %s * interval '1 second' where agent_id = %s", ago, agent_id
        )

    async def after() -> object:
        await look_after_agents(backend)
        return fleet.one("select lifecycle from agent_runtime where agent_id = %s", agent_id)

    agent_id = fleet.agent_id("beacon")
    fleet.execute(
        "update agent_runtime set lifecycle = %s, lifecycle_changed_at = now() - interval '1 day'"
        " where agent_id = %s",
        *(state, agent_id),
    )
    fleet.execute(
        "update jobs set status = 'running', finished_at = null, started_at = now(), assigned_at = now(),"
        " lease_expires_at = now() + interval '1 hour', look_at = now() + interval '1 hour', claimed_by = 'beacon'"
        " where id = (select id from jobs where agent_id = %s limit 1)",
        agent_id,
    )
    at_work = await after()
    fleet.execute(
        "update jobs set status = 'succeeded', lease_expires_at = null, look_at = null, claimed_by = null,"
        " finished_at = now() where agent_id = %s and status = 'running'",
        agent_id,
    )
    ended(seconds - 100)
    in_a_pause = await after()
    ended(seconds + 100)

    assert (at_work, in_a_pause, await after()) == (state, state, state + 1)


@pytest.mark.rule("U004-10")
async def test_the_timer_runs_from_the_end_of_the_last_session(backend: Backend, fleet: Fleet) -> None:
    agent_id, owner = fleet.agent_id("beacon"), fleet.user_id("ana@example.com")
    fleet.execute(WORKED_LONG_AGO)
    fleet.execute(
        "insert into sessions (team_id, id, agent_id, user_id) values (%s, %s, %s, %s)",
        *(fleet.team_id(), SessionId.new(), agent_id, owner),
    )
    long_ago = "now() - interval '1 day'"
    fleet.execute(
        f"update agent_runtime set lifecycle = 2, lifecycle_changed_at = {long_ago} where agent_id = %s", agent_id
    )
    lifecycle = "select lifecycle from agent_runtime where agent_id = %s"

    await look_after_agents(backend)
    in_session = fleet.one(lifecycle, agent_id)
    fleet.execute("update sessions set status = 2, closed_at = now()")
    fleet.execute("update agent_runtime set last_used_at = now() - interval '200 seconds'")
    await look_after_agents(backend)
    just_ended = fleet.one(lifecycle, agent_id)
    fleet.execute("update agent_runtime set last_used_at = now() - interval '301 seconds'")
    await look_after_agents(backend)

    assert (in_session, just_ended, fleet.one(lifecycle, agent_id)) == (2, 2, 3)


async def test_duties_go_on_after_the_database_was_away_and_stop_when_told(
    backend: Backend, operator: PostgresRepository, fleet: Fleet
) -> None:
    often = [replace(duty, every_seconds=0.05) for duty in OF_AGENTS]
    away = Backend("postgresql://nobody@127.0.0.1:1/nowhere")

    async with duties_done(away, often) as failing, duties_done(backend, often):
        fleet.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where datname = current_database() and pid <> pg_backend_pid()"
        )
        fleet.execute(SILENT + OF, "atlas")
        async with asyncio.timeout(30):
            async for _ in operator.changes():
                if not fleet.one("select count(*) from jobs where claimed_by = 'atlas'"):
                    break
    await away.close()

    assert all(0 < record.failures == record.rounds for record in failing.values())
    assert not [task for task in asyncio.all_tasks() if "run_duty" in repr(task)]
