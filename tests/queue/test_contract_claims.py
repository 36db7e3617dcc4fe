"""Which job a claim brings: whose turn it is, and in which order."""

import pytest

from agent_console.domain.ids import JobId
from agent_console.domain.states import JobStatus
from agent_console.repository.port import Repository
from agent_console.repository.postgres.duties.rounds import DUTIES, do_round
from agent_console.repository.postgres.repository import PostgresRepository
from tests.queue.crew import Crew, claim, take, take_running


async def taken_one_by_one(agent: Repository, count: int) -> list[JobId]:
    return [(await take(agent)).id for _ in range(count)]


@pytest.mark.rule("R000-69", "R000-77", "R000-87", "R000-135", "R000-143", "R003-21", "R003-36", "R000-70")
@pytest.mark.rule("R003-9")
async def test_a_claim_assigns_one_queued_job_to_its_agent_for_as_long_as_it_asked(crew: Crew) -> None:
    atlas = await crew.agent("atlas")
    crew.fleet.execute("update agents set worker_id = 'edge-7' where name = 'atlas'")
    made = [await crew.enqueue() for _ in range(2)]

    claimed = await claim(atlas, lease_seconds=600)

    assert [job.id for job in claimed.jobs] == [made[0].id]
    assert claimed.job is not None
    assert (claimed.job.status, claimed.job.attempt) == (JobStatus.ASSIGNED, 1)
    assert (claimed.job.lease_expires_at - claimed.job.assigned_at).total_seconds() == 600
    row, other = crew.row(made[0].id), crew.row(made[1].id)
    assert (row["status"], row["agent_id"], row["claimed_by"]) == ("assigned", crew.id_of("atlas"), "edge-7")
    assert row["assigned_at"] == row["updated_at"]
    assert row["started_at"] is None
    assert other["status"] == "queued"


@pytest.mark.rule("R001-33", "R003-23", "R000-70", "U001-7")
async def test_with_auto_start_it_is_running_at_once(crew: Crew) -> None:
    atlas = await crew.agent("atlas")
    made = await crew.enqueue()

    job = await take_running(atlas)

    row = crew.row(made.id)
    assert (job.id, job.status, row["status"]) == (made.id, JobStatus.RUNNING, "running")
    assert row["started_at"] == row["assigned_at"]
    assert crew.story(made.id) == [(None, "queued"), ("queued", "running")]


@pytest.mark.rule("R000-140", "R000-141", "R000-142", "R003-4", "R000-139")
async def test_bound_jobs_come_first_then_the_urgent_then_the_oldest(crew: Crew) -> None:
    crew.fleet.execute("update agents set max_concurrent_jobs = 10 where name = 'atlas'")
    atlas = await crew.agent("atlas")
    old = await crew.enqueue()
    new = await crew.enqueue()
    urgent = await crew.enqueue("other", priority=5)
    low_bound = await crew.enqueue(
        priority=-10, bound_agent_id=crew.id_of("atlas"), required_capabilities=["nobody has this"]
    )
    high_bound = await crew.enqueue(priority=-5, bound_agent_id=crew.id_of("atlas"))

    taken = await taken_one_by_one(atlas, 5)

    assert taken == [high_bound.id, low_bound.id, urgent.id, old.id, new.id]


@pytest.mark.rule("R000-140", "R000-141", "R000-142", "U000-45", "U001-17")
async def test_many_in_one_claim_come_in_the_same_order_and_no_more_than_the_agent_may_hold(crew: Crew) -> None:
    crew.fleet.execute("update agents set max_concurrent_jobs = 8 where name = 'atlas'")
    atlas = await crew.agent("atlas")
    made = [await crew.enqueue(f"kind {number % 3}", priority=number % 4) for number in range(8)]
    bound = [await crew.enqueue(priority=-number, bound_agent_id=crew.id_of("atlas")) for number in range(2)]

    first = await claim(atlas, count=7)
    second = await claim(atlas, count=7)
    third = await claim(atlas)

    by_place = sorted(made, key=lambda job: (-job.priority, str(job.id)))
    wanted = [job.id for job in (*bound, *by_place)]
    assert [job.id for job in first.jobs] == wanted[:7]
    assert [job.id for job in second.jobs] == wanted[7:8]
    assert (third.jobs, third.reason) == ((), "at_your_limit")


@pytest.mark.rule("U000-45", "U001-17", "R000-143")
async def test_one_at_a_time_unless_the_agent_may_hold_more(crew: Crew) -> None:
    atlas = await crew.agent("atlas")
    for _ in range(2):
        await crew.enqueue()

    first = await claim(atlas, count=2)
    second = await claim(atlas)

    assert len(first.jobs) == 1
    assert (second.jobs, second.reason) == ((), "at_your_limit")


@pytest.mark.rule("R000-138", "R001-36", "U001-4", "R001-32")
async def test_an_agent_gets_what_it_can_do_and_the_rest_stays_queued(crew: Crew) -> None:
    crew.fleet.execute("update agents set max_concurrent_jobs = 10 where name = 'atlas'")
    atlas = await crew.agent("atlas")
    wanted = {
        "nothing asked": [],
        "all it has": ["local_filesystem", "tool:photostats:1.2.3"],
        "the tool, any version": ["tool:photostats"],
        "one it lacks": ["local_filesystem", "gpu"],
        "another version": ["tool:photostats:2.0.0"],
        "another tool": ["tool:photo"],
    }
    made = {word: await crew.enqueue(required_capabilities=asked) for word, asked in wanted.items()}

    claimed = await claim(atlas, count=10)

    assert {job.id for job in claimed.jobs} == {
        made[word].id for word in ("nothing asked", "all it has", "the tool, any version")
    }
    for word in ("one it lacks", "another version", "another tool"):
        assert crew.status(made[word].id) == "queued", word
    assert (await claim(atlas)).reason == "nothing_for_you"


@pytest.mark.rule("R000-137", "R000-138")
async def test_nobody_gets_what_is_bound_to_another_or_belongs_to_another_team(crew: Crew) -> None:
    atlas = await crew.agent("atlas")
    bound = await crew.enqueue(bound_agent_id=crew.id_of("beacon"))
    other_team = crew.fleet.add_team("other")
    crew.fleet.execute(
        "with lane as (insert into lanes (team_id, id, key, job_type)"
        " select %s, new_id(), key, job_type from lanes where bound_agent_id is not null returning id)"
        " insert into jobs (team_id, id, lane_id, type, payload) select %s, new_id(), id, 'work', '{}' from lane",
        other_team,
        other_team,
    )

    claimed = await claim(atlas)

    assert (claimed.jobs, claimed.reason) == ((), "nothing_for_you")
    assert crew.status(bound.id) == "queued"
    assert crew.fleet.one("select status from jobs where team_id = %s", other_team) == "queued"


@pytest.mark.rule("R000-140", "R000-141", "R000-142", "R003-4")
async def test_the_urgent_comes_first_however_many_wait_before_it(crew: Crew) -> None:
    """More than a claim looks at, in more lanes than one."""
    atlas = await crew.agent("atlas")
    lanes = [await crew.enqueue(f"kind {number}", priority=-1) for number in range(2)]
    crew.fleet.execute(
        "insert into jobs (team_id, id, lane_id, type, payload)"
        " select team_id, new_id(), lane_id, type, payload from jobs, generate_series(1, 60)"
    )
    urgent = await crew.enqueue("kind 1", priority=1)

    job = await take(atlas)

    assert job.id == urgent.id
    assert [crew.status(lane.id) for lane in lanes] == ["queued", "queued"]


@pytest.mark.rule("R000-134")
async def test_a_job_written_without_the_newer_columns_is_claimed_like_any_other(crew: Crew) -> None:
    atlas = await crew.agent("atlas")
    crew.fleet.execute(
        "with lane as (insert into lanes (team_id, id, key) values (%s, new_id(), repeat('0', 64)) returning *)"
        " insert into jobs (team_id, id, lane_id, type, payload)"
        " select team_id, new_id(), id, 'old', '{}' from lane",
        crew.fleet.team_id(),
    )

    job = await take(atlas)

    assert (job.type, job.priority, job.attempt, job.max_attempts) == ("old", 0, 1, 3)
    assert (job.required_capabilities, job.max_run_seconds) == ((), 14_400)


@pytest.mark.rule("U000-44", "R000-152")
async def test_without_an_agent_nobody_does_a_job(direct_crew: Crew) -> None:
    made = await direct_crew.enqueue()
    assert isinstance(direct_crew.operator, PostgresRepository)
    before = direct_crew.row(made.id)

    for duty in DUTIES:
        await do_round(duty, direct_crew.operator.backend)

    assert direct_crew.row(made.id) == before
    assert direct_crew.story(made.id) == [(None, "queued")]
