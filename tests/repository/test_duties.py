"""What is done while time passes: silence noticed, jobs given back, unused agents put to rest."""

import asyncio
import json
from collections.abc import AsyncIterator
from time import monotonic

import pytest

from agent_console.domain.agents import AgentAsked
from agent_console.domain.ids import AgentId, SessionId
from agent_console.domain.records import Nothing
from agent_console.domain.states import Lifecycle, Presence
from agent_console.repository.operations import AGENTS_GET, POOL_STATUS
from agent_console.repository.postgres import duties as duties_module
from agent_console.repository.postgres.duties import Duties, duties_done
from agent_console.repository.postgres.identify import by_name
from agent_console.repository.postgres.repository import Backend, PostgresRepository
from tests.support.fleet import Fleet

SILENT = "update agent_runtime r set last_heartbeat_at = now() - interval '91 seconds' from agents a"
OF = " where a.team_id = r.team_id and a.id = r.agent_id and a.name = %s"


@pytest.fixture
async def backend(fleet: Fleet) -> AsyncIterator[Backend]:
    backend = Backend(fleet.working)
    yield backend
    await backend.close()


@pytest.fixture
def operator(backend: Backend) -> PostgresRepository:
    return PostgresRepository(backend, by_name("example", None))


def jobs_of(fleet: Fleet, *ids: object) -> list[tuple[object, ...]]:
    return fleet.execute(
        "select status, agent_id, claimed_by, lease_expires_at, progress, attempt, next_attempt_at - now() between"
        " interval '25 seconds' and interval '30 seconds' as waits from jobs where id = any(%s) order by id",
        list(ids),
    )


@pytest.mark.rule("R000-30", "R000-31", "R000-86", "R001-14", "U000-6")
async def test_a_silent_agent_goes_offline_and_its_jobs_go_back_together(
    backend: Backend, operator: PostgresRepository, fleet: Fleet
) -> None:
    (job,) = fleet.execute("select id from jobs where claimed_by = 'atlas'")
    fleet.execute(SILENT + OF, "atlas")

    await Duties(backend).round()

    atlas = await operator.call(AGENTS_GET, AgentAsked(agent_id=fleet.agent_id("atlas")))
    assert fleet.one("select presence from agent_runtime where agent_id = %s", atlas.id) == "offline"
    assert (atlas.status, atlas.current_jobs, atlas.uptime_seconds) == (Presence.OFFLINE, 0, None)
    assert jobs_of(fleet, *job) == [("queued", None, None, None, None, 2, True)]
    told = fleet.execute("select message, level, attempt from job_events where job_id = %s order by seq", *job)
    assert told[-1] == ("running to queued: no heartbeat for 90 s", "warn", 1)


async def test_those_who_are_heard_keep_what_they_have(
    backend: Backend, operator: PostgresRepository, fleet: Fleet
) -> None:
    held = await operator.call(POOL_STATUS, Nothing())
    fleet.execute("update agent_runtime set last_heartbeat_at = now() - interval '70 seconds'")

    await Duties(backend).round()

    assert (await operator.call(POOL_STATUS, Nothing())).model_dump(exclude={"at"}) == held.model_dump(
        exclude={"at"}
    )


async def test_who_is_heard_between_the_look_and_the_sweep_stays_online(backend: Backend, fleet: Fleet) -> None:
    fleet.execute(SILENT + OF, "atlas")
    duties = Duties(backend)
    seen = await duties.look()

    fleet.execute("update agent_runtime set last_heartbeat_at = now()")
    for team_id, silent in seen.items():
        await duties.sweep(team_id, silent)

    assert seen == {fleet.team_id(): [fleet.agent_id("atlas")]}
    assert fleet.one("select presence from agent_runtime where agent_id = %s", fleet.agent_id("atlas")) == "online"
    assert fleet.one("select count(*) from jobs where claimed_by = 'atlas'") == 1


@pytest.mark.rule("U000-6")
async def test_the_last_try_of_a_lost_agent_is_a_dead_letter(backend: Backend, fleet: Fleet) -> None:
    fleet.execute("update jobs set attempt = 3 where claimed_by = 'atlas'")
    fleet.execute(SILENT + OF, "atlas")

    await Duties(backend).round()

    assert fleet.execute(
        "select attempt, error_message, finished_at is not null from jobs"
        " where status = 'dead_letter' and error_code = 'agent_lost'"
    ) == [(3, "no heartbeat for 90 s", True)]


async def test_a_job_that_was_asked_to_stop_ends_cancelled(backend: Backend, fleet: Fleet) -> None:
    held = fleet.execute(
        "select id, cancel_requested_at is not null from jobs where claimed_by = 'ember' order by id"
    )
    fleet.execute(SILENT + OF, "ember")

    await Duties(backend).round()

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

    await Duties(backend).round()

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

    await asyncio.gather(*(Duties(each).round() for each in (backend, other, backend, other)))
    await asyncio.gather(Duties(backend).round(), Duties(other).round())
    await other.close()

    assert fleet.one("select count(*) from agent_runtime where presence in ('online', 'error')") == 0
    assert fleet.one("select count(*) from jobs where status in ('assigned', 'running')") == 0
    assert fleet.one("select max(attempt) from jobs where status = 'queued'") == 2
    assert fleet.one("select count(*) from job_events where level = 'warn'") == 6


async def test_more_silent_agents_than_one_batch_are_all_swept(
    backend: Backend, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duties_module, "BATCH", 2)
    fleet.execute("update agent_runtime set last_heartbeat_at = now() - interval '91 seconds'")

    await Duties(backend).round()

    assert fleet.one("select count(*) from agent_runtime where presence in ('online', 'error')") == 0


async def test_in_a_large_fleet_nobody_is_looked_for_before_the_oldest_heartbeat_is_due(
    backend: Backend, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duties_module, "LOOKED_AT_PER_SECOND", 0.001)
    duties = Duties(backend)

    fleet.execute("update agent_runtime set last_heartbeat_at = now() - interval '30 seconds'")
    await duties.look()
    healthy = duties.look_at - monotonic()
    fleet.execute(SILENT.replace("91", "85") + OF, "atlas")
    await duties.look()
    doubtful = duties.look_at - monotonic()

    assert 55 < healthy <= 60
    assert 0 < doubtful <= 5


async def test_in_a_small_fleet_a_look_is_cheap_and_done_every_time(backend: Backend, fleet: Fleet) -> None:
    fleet.execute("update agent_runtime set last_heartbeat_at = now()")
    duties = Duties(backend)

    await duties.look()

    assert duties.look_at - monotonic() < 0.01


@pytest.mark.rule("U004-10")
async def test_unused_agents_go_idle_and_then_hibernate(backend: Backend, fleet: Fleet) -> None:
    def lifecycle(agent_id: AgentId) -> object:
        return fleet.one("select lifecycle from agent_runtime where agent_id = %s", agent_id)

    def rest(name: str, state: int, seconds: int) -> AgentId:
        agent_id = fleet.agent_id(name)
        fleet.execute(
            "update agent_runtime set lifecycle = %s, lifecycle_changed_at = now() - %s * interval '1 second',"
            " last_session_ended_at = null where agent_id = %s",
            *(state, seconds, agent_id),
        )
        return agent_id

    early, due, working = rest("beacon", 2, 299), rest("fathom", 2, 301), rest("atlas", 2, 9999)
    awake, asleep = rest("gantry", 3, 1799), rest("harbor", 3, 1801)

    await Duties(backend).round()

    assert [lifecycle(agent) for agent in (early, due, working, awake, asleep)] == [2, 3, 2, 3, 4]
    since = "select extract(epoch from now() - lifecycle_changed_at)::int from agent_runtime where agent_id = %s"
    assert fleet.one(since, due) in range(0, 4), "idle since it was due, not since somebody looked"
    assert fleet.one("select count(*) from audit_log where actor_type = 'system' and action = 'agent.move'") == 2


@pytest.mark.rule("U004-10")
async def test_the_timer_runs_from_the_end_of_the_last_session(backend: Backend, fleet: Fleet) -> None:
    agent_id, owner = fleet.agent_id("beacon"), fleet.user_id("ana@example.com")
    fleet.execute(
        "insert into sessions (team_id, id, agent_id, user_id) values (%s, %s, %s, %s)",
        *(fleet.team_id(), SessionId.new(), agent_id, owner),
    )
    long_ago = "now() - interval '1 day'"
    fleet.execute(
        f"update agent_runtime set lifecycle = 2, lifecycle_changed_at = {long_ago} where agent_id = %s", agent_id
    )
    lifecycle = "select lifecycle from agent_runtime where agent_id = %s"

    await Duties(backend).round()
    in_session = fleet.one(lifecycle, agent_id)
    fleet.execute("update sessions set status = 2, closed_at = now()")
    fleet.execute("update agent_runtime set last_session_ended_at = now() - interval '299 seconds'")
    await Duties(backend).round()
    just_ended = fleet.one(lifecycle, agent_id)
    fleet.execute("update agent_runtime set last_session_ended_at = now() - interval '301 seconds'")
    await Duties(backend).round()

    assert (in_session, just_ended, fleet.one(lifecycle, agent_id)) == (2, 2, 3)


async def test_duties_go_on_after_the_database_was_away_and_stop_when_told(
    backend: Backend, operator: PostgresRepository, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duties_module, "DUTY_SECONDS", 0.05)
    away = Backend("postgresql://nobody@127.0.0.1:1/nowhere")

    async with duties_done(away), duties_done(backend):
        fleet.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where datname = current_database() and pid <> pg_backend_pid()"
        )
        fleet.execute(SILENT + OF, "atlas")
        async with asyncio.timeout(5):
            async for _ in operator.changes():
                if not fleet.one("select count(*) from jobs where claimed_by = 'atlas'"):
                    break
    await away.close()

    assert not [task for task in asyncio.all_tasks() if "run_duties" in repr(task)]
