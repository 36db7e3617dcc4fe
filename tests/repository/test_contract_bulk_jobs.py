"""Acting on many jobs in batches, through both repositories."""

import pytest
from pydantic import ValidationError

from agent_console.domain.errors import ConsoleError, Invalid
from agent_console.domain.ids import JobId
from agent_console.domain.job_acts import JobBatch, JobsCancelling, JobSelection, JobsReprioritising, JobsRetrying
from agent_console.domain.states import JobStatus
from agent_console.repository.operations import AnyOperation
from agent_console.repository.operations.job_acts import (
    JOBS_CANCEL_MANY,
    JOBS_REPRIORITISE_MANY,
    JOBS_RETRY_MANY,
)
from agent_console.repository.port import Repository
from agent_console.repository.postgres.queue import bulk_jobs
from tests.repository.test_contract_agent_changes import bind_collection
from tests.support.fleet import Fleet
from tests.support.stories import acts, lines

Q, A, D, F = JobStatus.QUEUED, JobStatus.ASSIGNED, JobStatus.DEAD_LETTER, JobStatus.FAILED


async def all_batches(repository: Repository, operation: AnyOperation, asked: JobSelection) -> list[JobBatch]:
    done: list[JobBatch] = [await repository.call(operation, asked)]
    while done[-1].next is not None:
        done.append(await repository.call(operation, asked.model_copy(update={"after": done[-1].next})))
    return done


def count(fleet: Fleet, status: str, type: str = "bulk") -> object:
    return fleet.one("select count(*) from jobs where status = %s and type = %s", status, type)


async def test_a_dry_run_counts_and_shows_a_few_and_changes_nothing(repository: Repository, fleet: Fleet) -> None:
    fleet.add_jobs(30)
    told = lines(fleet)

    dry = await repository.call(JOBS_CANCEL_MANY, JobsCancelling(type="bulk", dry_run=True))

    assert (dry.done, dry.left, dry.left_capped, dry.next) == (0, 30, False, None)
    assert [example.type for example in dry.examples] == ["bulk"] * 10
    newest = fleet.execute("select id from jobs where type = 'bulk' order by id desc limit 10")
    assert [example.id for example in dry.examples] == [JobId(str(row[0])) for row in newest]
    assert (count(fleet, "queued"), lines(fleet), acts(fleet)) == (30, told, [])


@pytest.mark.rule("R000-81", "R003-27")
async def test_all_that_match_are_cancelled_batch_by_batch(repository: Repository, fleet: Fleet) -> None:
    fleet.add_jobs(25)
    others = fleet.one("select count(*) from jobs where type <> 'bulk' and status = 'queued'")
    asked = JobsCancelling(type="bulk", status=(Q,), batch_size=10, reason="wrong day")

    batches = await all_batches(repository, JOBS_CANCEL_MANY, asked)

    assert [(batch.done, batch.left) for batch in batches] == [(10, 15), (10, 5), (5, 0)]
    assert (count(fleet, "queued"), count(fleet, "cancelled")) == (0, 25)
    assert fleet.one("select count(*) from jobs where type <> 'bulk' and status = 'queued'") == others
    told = fleet.one("select count(*) from job_events where message = 'queued to cancelled: wrong day'")
    assert told == 25
    facts = {"done": 10, "unchanged": 0, "refused": 0, "ids": 0, "status": "queued", "type": "bulk"}
    facts |= {"agent_id": None, "collection_id": None, "tool": None}
    assert acts(fleet)[0] == ("job.cancel_many", str(fleet.team_id()), facts, "wrong day")
    assert len(acts(fleet)) == 3


async def test_what_comes_meanwhile_is_left_alone(repository: Repository, fleet: Fleet) -> None:
    fleet.add_jobs(20)
    asked = JobsCancelling(type="bulk", batch_size=10)

    first = await repository.call(JOBS_CANCEL_MANY, asked)
    fleet.add_jobs(7, since="2101-01-01")
    second = await repository.call(JOBS_CANCEL_MANY, asked.model_copy(update={"after": first.next}))

    assert (first.done, second.done, second.next) == (10, 10, None)
    assert count(fleet, "queued") == 7


async def test_each_id_is_done_or_refused_with_its_reason(repository: Repository, fleet: Fleet) -> None:
    waiting, held, ended = (fleet.first_job(status) for status in ("queued", "running", "succeeded"))
    cancelled, missing = fleet.first_job("cancelled"), JobId.new()
    ids = (waiting, held, ended, cancelled, missing, waiting)

    dry = await repository.call(JOBS_CANCEL_MANY, JobsCancelling(ids=ids, dry_run=True))
    before = fleet.one("select status from jobs where id = %s", waiting)
    done = await repository.call(JOBS_CANCEL_MANY, JobsCancelling(ids=ids))

    assert (dry.left, {example.id for example in dry.examples}) == (2, {waiting, held})
    assert (before, dry.refused, dry.unchanged) == ("queued", done.refused, done.unchanged)
    assert (done.done, done.unchanged, done.refused_count, done.next) == (2, 1, 2, None)
    why = {refusal.id: refusal.why for refusal in done.refused}
    assert why.keys() == {str(ended), str(missing)}
    assert "is succeeded" in why[str(ended)]
    assert "There is no job" in why[str(missing)]
    assert fleet.one("select cancel_requested_at is not null from jobs where id = %s", held) is True
    assert acts(fleet)[0][2] == {
        **{"done": 2, "unchanged": 1, "refused": 2, "ids": 6, "status": None, "type": None},
        **{"agent_id": None, "collection_id": None, "tool": None},
    }


@pytest.mark.rule("R000-91")
async def test_dead_letters_go_back_to_work_once_however_often_it_is_asked(
    repository: Repository, fleet: Fleet
) -> None:
    fleet.add_jobs(12, status="dead_letter")
    asked = JobsRetrying(status=(D,), type="bulk", batch_size=5)

    first = await repository.call(JOBS_RETRY_MANY, asked)
    from_the_start = await all_batches(repository, JOBS_RETRY_MANY, asked)
    dry = await repository.call(JOBS_RETRY_MANY, asked.model_copy(update={"dry_run": True}))

    assert (first.done, first.left) == (5, 7)
    assert [batch.done for batch in from_the_start] == [5, 2]
    assert (dry.left, count(fleet, "dead_letter"), count(fleet, "queued")) == (0, 12, 12)
    chains = "select count(distinct parent_job_id) from jobs where parent_kind = 'retry' and attempt = 1"
    assert fleet.one(chains) == 12
    assert {act[0] for act in acts(fleet)} == {"job.retry_many"}


async def test_many_get_another_priority(repository: Repository, fleet: Fleet) -> None:
    fleet.add_jobs(6)
    fleet.execute("update jobs set priority = 4 where id in (select id from jobs where type = 'bulk' limit 2)")

    done = await repository.call(JOBS_REPRIORITISE_MANY, JobsReprioritising(type="bulk", priority=4))

    assert (done.done, done.unchanged) == (4, 2)
    assert fleet.execute("select distinct priority from jobs where type = 'bulk'") == [(4,)]
    metadata = acts(fleet)[0][2]
    assert isinstance(metadata, dict)
    assert (metadata["priority"], metadata["done"]) == (4, 4)


async def test_no_job_is_met_by_two_batches(repository: Repository, fleet: Fleet) -> None:
    fleet.add_jobs(25)
    asked = JobsReprioritising(type="bulk", priority=4, batch_size=10)

    batches = await all_batches(repository, JOBS_REPRIORITISE_MANY, asked)

    assert [(batch.done, batch.unchanged) for batch in batches] == [(10, 0), (10, 0), (5, 0)]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("agent_id", 2), ("tool", 2), ("collection_id", 1)],
)
async def test_every_filter_narrows(repository: Repository, fleet: Fleet, name: str, expected: int) -> None:
    collection_id = bind_collection(fleet, "photos", fleet.agent_id("atlas"))
    job_id = fleet.first_job("queued")
    fleet.execute("update jobs set collection_id = %s where id = %s", collection_id, job_id)
    values = {"agent_id": fleet.agent_id("ember"), "tool": "codex", "collection_id": collection_id}
    asked = JobsCancelling.model_validate({name: values[name], "dry_run": True})

    found = await repository.call(JOBS_CANCEL_MANY, asked)

    assert (found.left, len(found.examples)) == (expected, expected)


@pytest.mark.parametrize(
    "unclear",
    [
        {},
        {"ids": [str(JobId.new())], "status": ["queued"]},
        {"status": ["queued", "succeeded"]},
        {"type": "x", "after": "job_nonsense"},
    ],
)
async def test_what_is_not_clear_is_refused_and_never_means_everything(
    repository: Repository, fleet: Fleet, unclear: dict[str, object]
) -> None:
    with pytest.raises(Invalid):
        await repository.call(JOBS_CANCEL_MANY, JobsCancelling.model_validate(unclear))

    assert fleet.one("select count(*) from jobs where status = 'cancelled'") == 1


@pytest.mark.parametrize(
    ("selection", "more"), [(JobsCancelling, {}), (JobsRetrying, {}), (JobsReprioritising, {"priority": 1})]
)
@pytest.mark.parametrize("blank", ["", " ", "\t \n"])
def test_a_filter_that_was_left_blank_never_means_everything(
    selection: type[JobSelection], more: dict[str, object], blank: str
) -> None:
    with pytest.raises(ValidationError, match=r"filter\n.*must not be blank"):
        selection.model_validate({"filter": blank} | more)


async def test_a_batch_looks_at_so_many_and_goes_on_from_there(
    repository: Repository, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_jobs, "LOOKED_AT", 10)
    fleet.add_jobs(35, type="other")
    fleet.add_jobs(3, since="2029-01-01")

    batches = await all_batches(repository, JOBS_CANCEL_MANY, JobsCancelling(type="bulk", status=(Q, A)))

    assert sum(batch.done for batch in batches) == 3
    assert len(batches) > 3
    assert (batches[0].done, batches[0].left_capped, batches[-1].left_capped) == (0, True, False)
    assert (count(fleet, "queued"), count(fleet, "queued", "other")) == (0, 35)


async def test_a_batch_that_fails_has_done_nothing(repository: Repository, fleet: Fleet) -> None:
    fleet.add_jobs(10)
    fleet.execute(
        "create function spoil() returns trigger language plpgsql as"
        " $$ begin raise exception 'no' using errcode = 'check_violation'; end $$"
    )
    fleet.execute("create trigger spoil before insert on audit_log for each row execute function spoil()")
    told = lines(fleet)

    with pytest.raises(ConsoleError):
        await repository.call(JOBS_CANCEL_MANY, JobsCancelling(type="bulk"))

    assert (count(fleet, "queued"), lines(fleet)) == (10, told)
