"""Signed jobs where there is no key to sign with: none is made, and one that is there costs nobody another job."""

import asyncio

import pytest

from agent_console.domain.errors import ConfigError, Conflict
from agent_console.domain.job_acts import JobRetrying
from agent_console.domain.jobs import NewJob
from agent_console.domain.many_jobs import NewJobs
from agent_console.domain.working import ClaimWanted, JobDone
from agent_console.repository.operations import JOBS_CREATE
from agent_console.repository.operations.enqueueing import JOBS_CREATE_MANY
from agent_console.repository.operations.job_acts import JOBS_RETRY
from agent_console.repository.operations.working import JOBS_COMPLETE
from tests.queue.conftest import SERVER_KEY
from tests.queue.crew import Crew, claim, take_running

KEY = "AGENT_CONSOLE_SERVER_KEY"
SIGNED = NewJob(type="work", payload={}, signed=True)
PLAIN = NewJob(type="work", payload={})
NEEDS_KEY = "A signed job needs a server key, and there is none."


@pytest.fixture
def keyless(crew: Crew, monkeypatch: pytest.MonkeyPatch) -> Crew:
    monkeypatch.delenv(KEY)
    return crew


async def test_no_signed_job_is_made(keyless: Crew) -> None:
    for wanted in ((JOBS_CREATE, SIGNED), (JOBS_CREATE_MANY, NewJobs(jobs=(PLAIN, SIGNED)))):
        with pytest.raises(Conflict) as refused:
            await keyless.operator.call(*wanted)
        assert refused.value.message == NEEDS_KEY
        assert KEY in refused.value.hint

    assert keyless.rows("select id from jobs") == []


async def test_who_asks_for_an_unsigned_job_at_the_same_time_gets_it(keyless: Crew) -> None:
    calls = (keyless.operator.call(JOBS_CREATE, new) for new in (PLAIN, SIGNED, PLAIN, SIGNED))

    made = await asyncio.gather(*calls, return_exceptions=True)

    assert [isinstance(answer, Conflict) for answer in made] == [False, True, False, True]
    assert keyless.rows("select signed from jobs") == [{"signed": False}] * 2


async def test_a_key_that_is_none_is_told_as_such(crew: Crew, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY, "nonsense")

    with pytest.raises(ConfigError):
        await crew.operator.call(JOBS_CREATE, SIGNED)

    assert crew.rows("select id from jobs") == []


async def test_a_signed_job_is_not_retried(crew: Crew, monkeypatch: pytest.MonkeyPatch) -> None:
    made = await crew.enqueue(signed=True)
    crew.fleet.execute("update jobs set status = 'cancelled', look_at = null, finished_at = now()")
    monkeypatch.delenv(KEY)

    with pytest.raises(Conflict) as refused:
        await crew.operator.call(JOBS_RETRY, JobRetrying(job_id=made.id))

    assert refused.value.message == NEEDS_KEY
    assert len(crew.rows("select id from jobs")) == 1


@pytest.mark.parametrize("key", [None, "nonsense"])
@pytest.mark.parametrize("auto_start", [False, True])
async def test_a_claim_that_meets_one_gives_it_back_and_brings_the_others(
    crew: Crew, monkeypatch: pytest.MonkeyPatch, key: str | None, auto_start: bool
) -> None:
    crew.fleet.execute("update agents set max_concurrent_jobs = 4 where name = 'atlas'")
    atlas = await crew.agent("atlas")
    first, signed, last = [await crew.enqueue(priority=9 - n, signed=n == 1) for n in range(3)]
    if key is None:
        monkeypatch.delenv(KEY)
    else:
        monkeypatch.setenv(KEY, key)

    claimed = await claim(atlas, count=3, auto_start=auto_start)

    assert [job.id for job in claimed.jobs] == [first.id, last.id]
    row = crew.row(signed.id)
    assert (row["status"], row["error_code"], row["agent_id"]) == ("queued", "no_server_key", None)
    assert KEY in str(row["error_message"])
    held = "running" if auto_start else "assigned"
    assert crew.story(signed.id)[-1] == (held, "queued")


async def test_what_waits_behind_one_is_brought_by_the_same_claim(
    crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    atlas = await crew.agent("atlas")
    signed = [await crew.enqueue(priority=5, signed=True) for _ in range(5)]
    plain = await crew.enqueue()
    monkeypatch.delenv(KEY)

    claimed = await claim(atlas)

    assert [job.id for job in claimed.jobs] == [plain.id]
    assert {crew.row(job.id)["error_code"] for job in signed} == {"no_server_key"}


async def test_a_claim_that_brings_nothing_else_says_so(crew: Crew, monkeypatch: pytest.MonkeyPatch) -> None:
    atlas = await crew.agent("atlas")
    signed = await crew.enqueue(signed=True, max_attempts=1)
    monkeypatch.delenv(KEY)

    claimed = await claim(atlas)

    assert (claimed.jobs, claimed.reason) == ((), "nothing_queued")
    assert crew.status(signed.id) == "dead_letter"


async def test_an_end_that_asks_for_more_stays_whatever_comes_next(
    crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    atlas = await crew.agent("atlas")
    await crew.enqueue(priority=9)
    await crew.enqueue(signed=True, priority=5)
    last = await crew.enqueue()
    job = await take_running(atlas)
    monkeypatch.delenv(KEY)

    ended = await atlas.call(JOBS_COMPLETE, JobDone(job_id=job.id, attempt=1, claim_next=ClaimWanted()))

    assert ended.status == "succeeded"
    assert ended.next is not None
    assert [following.id for following in ended.next.jobs] == [last.id]


async def test_with_a_key_it_is_worked_on_after_all(crew: Crew, monkeypatch: pytest.MonkeyPatch) -> None:
    atlas = await crew.agent("atlas")
    signed = await crew.enqueue(signed=True)
    monkeypatch.delenv(KEY)
    await claim(atlas)
    monkeypatch.setenv(KEY, SERVER_KEY)
    crew.time_passes(60)

    job = await take_running(atlas)

    assert (job.id, job.attempt) == (signed.id, 2)
    assert job.signing_secret is not None
