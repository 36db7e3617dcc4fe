"""What keeps an agent from telling anything of a job that it may not: each fence by itself."""

import asyncio

import psycopg
import pytest

from agent_console.domain.errors import Conflict, ConsoleError, Unauthorized
from agent_console.domain.ids import JobId
from agent_console.domain.kinds import PauseMode
from agent_console.domain.pausing import QueuePausing
from agent_console.domain.records import Nothing
from agent_console.domain.secrets import Secret
from agent_console.domain.working import EventLine, HeldJob, JobDone, JobLines, JobProgress, JobRenewal, JobStart
from agent_console.repository.operations import AnyOperation
from agent_console.repository.operations.pausing import QUEUE_PAUSE, QUEUE_RESUME
from agent_console.repository.operations.working import (
    JOBS_COMPLETE,
    JOBS_LOG,
    JOBS_PROGRESS,
    JOBS_RENEW,
    JOBS_START,
)
from agent_console.repository.port import REFETCH, Change, Repository, Topic
from agent_console.repository.postgres.repository import open_direct
from tests.queue.crew import Crew, key_of, take, take_running
from tests.queue.test_contract_claims_policy import with_token
from tests.queue.test_fences import ROTATED
from tests.repository.test_contract_changes import heard_until, next_of
from tests.support.locks import somebody_waits_for_a_lock


def reports(job_id: JobId) -> list[tuple[AnyOperation, HeldJob]]:
    return [
        (JOBS_START, JobStart(job_id=job_id, attempt=1)),
        (JOBS_RENEW, JobRenewal(job_id=job_id, attempt=1)),
        (JOBS_PROGRESS, JobProgress(job_id=job_id, attempt=1, percentage=1)),
        (JOBS_LOG, JobLines(job_id=job_id, attempt=1, events=(EventLine(message="hello"),))),
    ]


async def refused(kind: type[ConsoleError], agent: Repository, crew: Crew, job_id: JobId) -> set[str]:
    """The codes of the refusals, none of which changed anything."""
    before, codes = (crew.row(job_id), crew.events(job_id)), set()
    for operation, said in reports(job_id):
        with pytest.raises(kind) as refusal:
            await agent.call(operation, said)
        codes.add(refusal.value.code)
    assert (crew.row(job_id), crew.events(job_id)) == before
    return codes


async def test_an_old_key_tells_something_until_its_grace_is_over(direct_crew: Crew) -> None:
    old = key_of(direct_crew.fleet, "atlas")
    atlas = await direct_crew.with_secret(old)
    made = await direct_crew.enqueue()
    await take(atlas)
    new = Secret.mint(direct_crew.fleet.team_id(), direct_crew.id_of("atlas"))
    direct_crew.fleet.execute(ROTATED, new.hash)

    for operation, said in reports(made.id):
        await atlas.call(operation, said)
    direct_crew.fleet.execute("update agents set previous_key_ends_at = now() where name = 'atlas'")

    assert await refused(Unauthorized, atlas, direct_crew, made.id) == {"unauthorized"}
    for operation, said in reports(made.id):
        await (await direct_crew.with_secret(new)).call(operation, said)


async def test_who_comes_with_a_token_tells_something_as_the_agent_it_stands_for(direct_crew: Crew) -> None:
    token, beacon = await with_token(direct_crew), await direct_crew.agent("beacon")
    made, other = await direct_crew.enqueue(), await direct_crew.enqueue()
    await take(token)
    await take(beacon)

    for operation, said in reports(made.id):
        await token.call(operation, said)

    atlas = direct_crew.fleet.one("select system_user_id from agents where name = 'atlas'")
    assert {event["created_by_user_id"] for event in direct_crew.events(made.id)[1:]} == {atlas}
    assert await refused(Conflict, token, direct_crew, other.id) == {"not_owner"}


async def test_a_deleted_agent_tells_nothing_and_waits_for_nobody(direct_crew: Crew) -> None:
    atlas = await direct_crew.agent("atlas")
    made = await direct_crew.enqueue()
    await take(atlas)
    direct_crew.fleet.execute("update agents set deleted_at = now() where name = 'atlas'")

    with psycopg.connect(direct_crew.fleet.administration) as changing:
        changing.execute("select from jobs where id = %s for update", (made.id,))
        async with asyncio.timeout(20):
            codes = await refused(Unauthorized, atlas, direct_crew, made.id)

    assert codes == {"unauthorized"}


async def test_of_a_job_that_has_ended_nothing_more_is_told(direct_crew: Crew) -> None:
    atlas = await direct_crew.agent("atlas")
    made = await direct_crew.enqueue()
    await take_running(atlas)
    await atlas.call(JOBS_COMPLETE, JobDone(job_id=made.id, attempt=1))

    await refused(Conflict, atlas, direct_crew, made.id)


@pytest.mark.parametrize("place", range(4), ids=["start", "renew", "progress", "log"])
async def test_a_job_that_is_taken_away_while_it_is_reported_on_is_waited_for(
    direct_crew: Crew, place: int
) -> None:
    atlas = await direct_crew.agent("atlas")
    made = await direct_crew.enqueue()
    await take(atlas)
    operation, said = reports(made.id)[place]

    with psycopg.connect(direct_crew.fleet.administration) as taking:
        taking.execute("update jobs set attempt = 2 where id = %s", (made.id,))
        reporting = asyncio.create_task(atlas.call(operation, said))
        await somebody_waits_for_a_lock(direct_crew.fleet, task=reporting)
        row, events = direct_crew.row(made.id), direct_crew.events(made.id)

    with pytest.raises(Conflict) as refusal:
        await reporting
    assert refusal.value.code == "not_owner"
    assert (direct_crew.row(made.id), direct_crew.events(made.id)) == (row | {"attempt": 2}, events)


async def test_a_report_waits_for_nobody_who_changes_another_job(direct_crew: Crew) -> None:
    atlas = await direct_crew.agent("atlas")
    made, other = await direct_crew.enqueue(), await direct_crew.enqueue()
    await take(atlas)

    with psycopg.connect(direct_crew.fleet.administration) as changing:
        changing.execute("select from jobs where id = %s for update", (other.id,))
        async with asyncio.timeout(60):
            for operation, said in reports(made.id):
                await atlas.call(operation, said)

    assert direct_crew.status(made.id) == "running"


async def test_whoever_looks_on_hears_of_what_is_told_and_not_of_what_is_refused(direct_crew: Crew) -> None:
    atlas, beacon = await direct_crew.agent("atlas"), await direct_crew.agent("beacon")
    refused_one, told_one = await direct_crew.enqueue(), await direct_crew.enqueue()
    await take(atlas)
    await take(beacon)
    changes = direct_crew.operator.changes()
    assert await next_of(changes) == REFETCH

    await refused(Conflict, beacon, direct_crew, refused_one.id)
    for operation, said in reports(told_one.id):
        await beacon.call(operation, said)
        heard = await heard_until(changes, Change(topic=Topic.JOBS, id=str(told_one.id)))
        assert str(refused_one.id) not in {change.id for change in heard}
    await changes.aclose()


@pytest.mark.parametrize(
    ("place", "changes"), enumerate([True, False, True, False]), ids=["start", "renew", "progress", "log"]
)
async def test_who_starts_a_job_or_tells_where_it_is_changed_it_last(
    direct_crew: Crew, place: int, changes: bool
) -> None:
    atlas, operator = await direct_crew.agent("atlas"), direct_crew.fleet.user_id("ole@example.com")
    made = await direct_crew.enqueue()
    await take(atlas, auto_start=place > 0)
    direct_crew.fleet.execute("update jobs set updated_by_user_id = %s", operator)

    await atlas.call(*reports(made.id)[place])

    agent = direct_crew.fleet.one("select system_user_id from agents where name = 'atlas'")
    assert direct_crew.row(made.id)["updated_by_user_id"] == (agent if changes else operator)


@pytest.mark.rule("R003-34", "R003-33", "R003-35")
async def test_who_gets_a_job_again_that_it_still_works_on_has_lost_the_first_try_of_it(crew: Crew) -> None:
    atlas = await crew.agent("atlas")
    made = await crew.enqueue(max_attempts=2)
    first = await take_running(atlas)
    async with open_direct(crew.fleet.working, user="ana@example.com") as admin:
        await admin.call(QUEUE_PAUSE, QueuePausing(mode=PauseMode.QUIESCE, reason="a wrong button"))
        await admin.call(QUEUE_RESUME, Nothing())
    second = await take_running(atlas)

    codes = await refused(Conflict, atlas, crew, made.id)
    with pytest.raises(Conflict):
        await atlas.call(JOBS_COMPLETE, JobDone(job_id=made.id, attempt=first.attempt))
    ended = await atlas.call(JOBS_COMPLETE, JobDone(job_id=made.id, attempt=second.attempt))

    assert second.id == first.id == made.id
    assert second.max_attempts - second.attempt == first.max_attempts - first.attempt
    assert codes == {"not_owner"}
    assert ended.status == "succeeded"
