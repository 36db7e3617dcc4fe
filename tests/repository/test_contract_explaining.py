"""Why a job is not running, through both repositories."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from agent_console.domain.errors import NotFound
from agent_console.domain.explaining import (
    AGENTS_COUNTED,
    AGENTS_NAMED,
    AHEAD_CAP,
    AgentGroup,
    Explanation,
    Obstacle,
    Standing,
)
from agent_console.domain.ids import JobId, WorkerTokenId
from agent_console.domain.jobs import Job, JobAsked, NewJob
from agent_console.domain.states import JobStatus
from agent_console.repository.operations import JOBS_CREATE, JOBS_GET
from agent_console.repository.operations.explaining import JOBS_EXPLAIN
from agent_console.repository.port import Repository
from agent_console.repository.postgres.repository import open_direct
from tests.repository.conftest import ADMIN, VIEWER, OpenRepository
from tests.support.connectors import make_connector
from tests.support.fleet import Fleet
from tests.support.many_agents import add_agents

# Only atlas has it, and it holds one job of one that it may hold.
PHOTOSTATS = "tool:photostats"
SET_RUNTIME = "update agent_runtime r set {} from agents a where a.team_id = r.team_id and a.id = r.agent_id"
Change = Callable[[Fleet], object]


async def made(repository: Repository, *needs: str, **facts: object) -> Job:
    wanted = {"type": "scan", "payload": {}, "required_capabilities": needs, **facts}
    return await repository.call(JOBS_CREATE, NewJob.model_validate(wanted))


async def explained(repository: Repository, job_id: JobId) -> Explanation:
    return await repository.call(JOBS_EXPLAIN, JobAsked(job_id=job_id))


def standings(explanation: Explanation) -> dict[Standing, list[str]]:
    return {group.standing: [agent.name for agent in group.agents] for group in explanation.agents}


def only_group(explanation: Explanation) -> AgentGroup:
    (group,) = explanation.agents
    return group


def set_runtime(fleet: Fleet, name: str, change: str) -> None:
    fleet.execute(f"{SET_RUNTIME.format(change)} and a.name = %s", name)


def set_agent(fleet: Fleet, name: str, change: str) -> None:
    fleet.execute(f"update agents set {change} where name = %s", name)


def let_go(fleet: Fleet, name: str) -> None:
    """The agent's jobs have ended, so that it is free."""
    fleet.execute(
        "update jobs set status = 'succeeded', claimed_by = null, lease_expires_at = null, look_at = null,"
        " finished_at = now() from agents a where a.name = %s and jobs.agent_id = a.id"
        " and jobs.status in ('assigned', 'running')",
        name,
    )


async def test_a_job_that_somebody_is_free_for_waits_for_its_turn_only(
    repository: Repository, fleet: Fleet
) -> None:
    job = await made(repository, "tool:triage")
    let_go(fleet, "dispatch")

    found = await explained(repository, job.id)

    assert found.summary == "It is next in its lane; 1 agent is free to take it (dispatch)."
    assert [wait.what for wait in found.waits_for] == [Obstacle.TURN]
    assert found.lane == "jobs of type scan for agents with tool:triage"
    assert standings(found) == {Standing.FREE: ["dispatch"], Standing.REVOKED: ["juniper"]}
    assert (found.status, found.ahead, found.agents_capped) == (JobStatus.QUEUED, 0, False)
    assert (found.held, found.ended, found.warnings) == (None, None, ())


STANDINGS: list[tuple[Standing, Change, str]] = [
    (Standing.FREE, lambda fleet: let_go(fleet, "atlas"), ""),
    (Standing.BUSY, lambda fleet: None, "1 of 1: photostats"),
    (Standing.DRAINED, lambda fleet: set_agent(fleet, "atlas", "drained_at = now(), drain_reason = 'fan'"), "fan"),
    (
        Standing.IN_ERROR,
        lambda fleet: set_runtime(fleet, "atlas", "presence = 'error', error_message = 'disk full'"),
        "disk full",
    ),
    (Standing.OFFLINE, lambda fleet: set_runtime(fleet, "atlas", "presence = 'offline'"), ""),
    (
        Standing.OFFLINE,
        lambda fleet: set_runtime(fleet, "atlas", "last_heartbeat_at = now() - interval '1 hour'"),
        "",
    ),
    (
        Standing.REVOKED,
        lambda fleet: set_agent(fleet, "atlas", "revoked_at = now(), revocation_reason = 'stolen'"),
        "",
    ),
]


@pytest.mark.parametrize(("standing", "change", "note"), STANDINGS)
async def test_who_could_take_it_is_told_by_how_they_stand(
    fleet: Fleet, standing: Standing, change: Change, note: str
) -> None:
    change(fleet)
    async with open_direct(fleet.working, team="example", user=ADMIN) as repository:
        job = await made(repository, PHOTOSTATS)
        group = only_group(await explained(repository, job.id))

    assert (group.standing, group.count, group.capped) == (standing, 1, False)
    assert [(agent.name, agent.note) for agent in group.agents] == [("atlas", note)]
    assert bool(job.warnings) is (standing not in (Standing.FREE, Standing.BUSY))


@pytest.mark.rule("U000-36")
async def test_making_a_job_that_nobody_could_take_warns_and_says_why(
    repository: Repository, fleet: Fleet
) -> None:
    set_runtime(fleet, "atlas", "presence = 'offline', last_heartbeat_at = now() - interval '400 days'")

    nobody = await made(repository, "tool:abacus", "local_filesystem")
    offline = await made(repository, PHOTOSTATS)
    fine = await made(repository, "tool:report")

    assert nobody.warnings == ("No agent has tool:abacus.",)
    (warning,) = offline.warnings
    assert warning.startswith(
        f"Nobody who is online has {PHOTOSTATS}; 1 agent has it but is offline (atlas since "
    )
    assert warning == (await explained(repository, offline.id)).summary
    assert fine.warnings == ()
    assert (await repository.call(JOBS_GET, JobAsked(job_id=nobody.id))).status is JobStatus.QUEUED


async def test_a_tool_of_another_version_is_not_enough(repository: Repository) -> None:
    job = await made(repository, "tool:photostats:9.9")

    found = await explained(repository, job.id)

    assert found.summary == "No agent has tool:photostats:9.9."
    assert found.waits_for[0].what is Obstacle.NOBODY
    assert found.agents == ()


async def test_what_each_has_but_nobody_has_together_is_told(repository: Repository) -> None:
    job = await made(repository, PHOTOSTATS, "tool:crawler")

    assert job.warnings == (f"No agent has tool:crawler and {PHOTOSTATS} together.",)


@pytest.mark.rule("R000-106", "U000-36")
async def test_a_pending_connector_keeps_its_jobs_queued_and_is_the_reason(repository: Repository) -> None:
    pending = await make_connector(repository, credential_location="pending")

    job = await made(repository, connector_id=str(pending.id))
    found = await explained(repository, job.id)

    assert job.warnings == (found.summary,)
    assert found.summary.startswith("Connector archive has no credentials yet")
    assert [wait.what for wait in found.waits_for] == [Obstacle.CONNECTOR]
    assert found.status is JobStatus.QUEUED


async def test_credentials_that_agents_keep_are_looked_for_among_agents(
    repository: Repository, fleet: Fleet
) -> None:
    kept = await make_connector(repository, credential_location="agent")
    before = await made(repository, connector_id=str(kept.id))
    fleet.execute(
        "insert into agent_connectors (team_id, agent_id, connector_id) values (%s, %s, %s)",
        *(fleet.team_id(), fleet.agent_id("atlas"), kept.id),
    )

    after = await made(repository, connector_id=str(kept.id))

    assert before.warnings == ("No agent has credentials for connector archive.",)
    assert after.warnings == ()
    assert standings(await explained(repository, after.id)) == {Standing.BUSY: ["atlas"]}


async def test_a_bound_job_waits_for_its_agent_alone(repository: Repository, fleet: Fleet) -> None:
    job = await made(repository, bound_agent_id=str(fleet.agent_id("fathom")))

    found = await explained(repository, job.id)

    assert found.lane == "jobs of type scan for fathom alone"
    assert found.summary == "It is bound to fathom, who is drained: disk swap."
    assert job.warnings == (found.summary,)
    assert standings(found) == {Standing.DRAINED: ["fathom"]}


def give_token(fleet: Fleet, name: str, **allowed: str) -> None:
    columns = "".join(f", {column}" for column in allowed)
    values = "".join(", %s::jsonb" for _ in allowed)
    fleet.execute(
        "insert into worker_tokens (team_id, id, worker_id, token_hash, token_prefix, created_by_user_id"
        f"{columns}) values (%s, %s, %s, repeat('a', 64), 'wkt_key_x', %s{values})",
        *(fleet.team_id(), WorkerTokenId.new(), name, fleet.user_id(ADMIN), *allowed.values()),
    )


async def test_an_agent_whose_token_forbids_it_is_named_with_what_it_may_not(
    repository: Repository, fleet: Fleet
) -> None:
    give_token(fleet, "atlas", allowed_job_types='["report"]')

    job = await made(repository, PHOTOSTATS)
    group = only_group(await explained(repository, job.id))

    assert group.standing is Standing.NOT_ALLOWED
    assert group.agents[0].note == "its credential does not allow jobs of type scan"
    assert len(job.warnings) == 1


async def test_a_token_can_give_what_the_agent_did_not_say_itself(repository: Repository, fleet: Fleet) -> None:
    give_token(fleet, "atlas", capabilities='["tool:abacus:1.0"]')

    job = await made(repository, "tool:abacus")

    assert job.warnings == ()
    assert standings(await explained(repository, job.id)) == {Standing.BUSY: ["atlas"]}


async def test_time_is_told_before_anything_else(repository: Repository, fleet: Fleet) -> None:
    tomorrow = datetime.now(UTC) + timedelta(days=1, minutes=5)

    scheduled = await made(repository, "tool:abacus", scheduled_for=tomorrow.isoformat())
    again = await made(repository, "tool:triage")
    fleet.execute(
        "update jobs set attempt = 2, next_attempt_at = now() + interval '1 hour', error_message = 'no route',"
        " look_at = now() + interval '1 hour' where id = %s",
        again.id,
    )
    waiting, retrying = await explained(repository, scheduled.id), await explained(repository, again.id)

    assert [wait.what for wait in waiting.waits_for] == [Obstacle.TIME, Obstacle.NOBODY]
    assert waiting.summary.startswith("It is scheduled to be ready on ")
    assert waiting.waits_for[0].until is not None
    assert abs(waiting.waits_for[0].until - tomorrow) < timedelta(seconds=1)
    assert waiting.ahead is None
    assert retrying.waits_for[0].what is Obstacle.RETRY
    assert retrying.summary.startswith("Try 2 of 3 is ready ")
    assert retrying.summary.endswith("after: no route")


async def test_a_due_job_that_nobody_tends_says_so(fleet: Fleet) -> None:
    async with open_direct(fleet.working, team="example", user=ADMIN) as repository:
        job = await made(repository, "tool:triage")
        fleet.execute(
            "update jobs set next_attempt_at = now() - interval '1 hour', look_at = now() - interval '1 hour'"
            " where id = %s",
            job.id,
        )
        found = await explained(repository, job.id)

    assert found.waits_for[0].what is Obstacle.TENDING
    assert found.summary == "It was due 1h ago, but nobody tends the queue: is a server or a console running?"


async def test_a_pause_is_told_with_who_and_why(repository: Repository, fleet: Fleet) -> None:
    fleet.execute(
        "update teams set pause_mode = 'drain', pause_reason = 'upgrade', paused_at = now(),"
        " paused_by_user_id = %s",
        fleet.user_id(ADMIN),
    )

    job = await made(repository, "tool:triage")
    found = await explained(repository, job.id)

    assert found.waits_for[0].what is Obstacle.PAUSE
    assert found.summary.startswith("The queue is paused (drain) by Ana Costa since ")
    assert found.summary.endswith(": upgrade")
    assert job.warnings == (found.summary,)


async def test_the_place_in_its_lane_goes_by_priority_and_age(repository: Repository, fleet: Fleet) -> None:
    first = await made(repository, "tool:triage")
    second = await made(repository, "tool:triage")
    urgent = await made(repository, "tool:triage", priority=5)
    await made(repository, "tool:crawler", priority=9)

    places = [(await explained(repository, job.id)).ahead for job in (first, second, urgent)]

    assert places == [1, 2, 0]


async def test_counting_who_is_ahead_ends_at_the_cap(repository: Repository, fleet: Fleet) -> None:
    fleet.add_jobs(AHEAD_CAP + 5)
    last = fleet.one("select id from jobs where type = 'bulk' order by id desc limit 1")
    assert hasattr(last, "int")

    found = await explained(repository, JobId(int=last.int))

    assert (found.ahead, found.ahead_capped) == (AHEAD_CAP, True)


async def test_a_held_job_tells_who_has_it(repository: Repository, fleet: Fleet) -> None:
    job_id = fleet.first_job("running")
    fleet.execute("update jobs set cancel_requested_at = null, assigned_at = now(), lease_expires_at = now()"
                  " + interval '1 hour' where id = %s", job_id)  # fmt: skip
    job = await repository.call(JOBS_GET, JobAsked(job_id=job_id))

    working = await explained(repository, job_id)
    fleet.execute("update jobs set cancel_requested_at = now() where id = %s", job_id)
    stopping = await explained(repository, job_id)

    assert working.held is not None
    assert (working.held.agent_name, working.held.claimed_by) == (job.agent_name, job.claimed_by)
    assert working.held.lease_until == job.lease_expires_at
    assert working.summary.startswith(f"{job.agent_name} works on it, since ")
    assert (working.waits_for, working.agents) == ((), ())
    assert "was asked to stop" in stopping.summary
    assert stopping.held is not None
    assert stopping.held.cancel_requested_at is not None


@pytest.mark.parametrize(
    ("status", "begins", "ends"),
    [
        (JobStatus.SUCCEEDED, "It succeeded ", "14 pages"),
        (JobStatus.FAILED, "It failed ", ": robots.txt forbids this path"),
        (JobStatus.DEAD_LETTER, "It was given up ", "did not renew it for 120 s"),
        (JobStatus.CANCELLED, "It was cancelled ", "."),
    ],
)
async def test_an_ended_job_tells_how_and_why(fleet: Fleet, status: JobStatus, begins: str, ends: str) -> None:
    wanted = "select id from jobs where status = %s order by result_summary = '14 pages' desc nulls last limit 1"
    found_id = fleet.one(wanted, status.value)
    assert hasattr(found_id, "int")
    async with open_direct(fleet.working, team="example", user=VIEWER) as repository:
        found = await explained(repository, JobId(int=found_id.int))

    assert found.ended is not None
    assert found.summary.startswith(begins)
    assert found.summary.endswith(ends)
    assert (found.held, found.waits_for, found.agents) == (None, (), ())


async def test_at_most_a_few_are_named_and_all_are_counted(repository: Repository, fleet: Fleet) -> None:
    add_agents(fleet, 14, "gpu", presence="offline")

    job = await made(repository, "gpu")
    group = only_group(await explained(repository, job.id))

    assert (group.standing, group.count, len(group.agents)) == (Standing.OFFLINE, 14, AGENTS_NAMED)


async def test_counting_agents_ends_at_the_cap(fleet: Fleet) -> None:
    add_agents(fleet, AGENTS_COUNTED + 1, "gpu")
    async with open_direct(fleet.working, team="example", user=ADMIN) as repository:
        job = await made(repository, "gpu")
        group = only_group(await explained(repository, job.id))

    assert (group.standing, group.count, group.capped) == (Standing.FREE, AGENTS_COUNTED, True)


async def test_a_fleet_too_large_to_look_at_is_not_said_to_lack_anything(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_console.repository.postgres.queue.able_agents.LOOKED_AT", 2)
    async with open_direct(fleet.working, team="example", user=ADMIN) as repository:
        job = await made(repository, "tool:codex")
        found = await explained(repository, job.id)

    assert found.agents_capped
    assert found.summary.startswith("None of the agents that were looked at could take it")
    assert job.warnings == (found.summary,)


async def test_another_teams_job_is_not_explained(open_repository: OpenRepository, fleet: Fleet) -> None:
    fleet.add_team("other")
    other = await open_repository("admin@other.example", "other")

    with pytest.raises(NotFound):
        await explained(other, fleet.first_job("queued"))
