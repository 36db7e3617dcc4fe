"""Lists filtered by the filter language, and read from either end, through both repositories."""

from datetime import UTC, datetime, timedelta

import pytest
from pydantic import ValidationError

from agent_console.domain.agents import Agent, AgentQuery
from agent_console.domain.errors import NotFound
from agent_console.domain.ids import JobId
from agent_console.domain.job_acts import JobsCancelling
from agent_console.domain.jobs import Job, JobQuery
from agent_console.domain.list_order import ListOrder
from agent_console.repository.operations import AGENTS_LIST, JOBS_LIST
from agent_console.repository.operations.job_acts import JOBS_CANCEL_MANY
from agent_console.repository.port import Repository
from agent_console.repository.postgres.walked_pages import WALKED_AT_MOST
from tests.support.fleet import Fleet


async def jobs(repository: Repository, filter: str, *, limit: int = 200) -> list[Job]:
    """Page by page to the end."""
    found: list[Job] = []
    after: str | None = None
    while True:
        page = await repository.call(JOBS_LIST, JobQuery(filter=filter, limit=limit, after=after))
        found += page.items
        if (after := page.next) is None:
            return found


async def agents(repository: Repository, filter: str, **more: object) -> list[str]:
    query = AgentQuery.model_validate({"filter": filter, "limit": 200, **more})
    page = await repository.call(AGENTS_LIST, query)
    return [agent.name for agent in page.items]


@pytest.mark.rule("U000-34", "U003-2")
async def test_every_qualifier_finds_what_the_list_itself_says(repository: Repository, fleet: Fleet) -> None:
    everything = (await repository.call(JOBS_LIST, JobQuery(limit=200))).items

    async def finds(filter: str, wanted: list[Job]) -> None:
        assert wanted, f"{filter} should find something"
        assert await jobs(repository, filter) == wanted
        assert await jobs(repository, filter, limit=1) == wanted

    await finds("status:dead_letter", [job for job in everything if job.status == "dead_letter"])
    await finds("status:failed status:queued", [job for job in everything if job.status in ("failed", "queued")])
    await finds("!status:queued type:crawl", [j for j in everything if j.type == "crawl" and j.status != "queued"])
    await finds("agent:ATLAS", [job for job in everything if job.agent_name == "atlas"])
    await finds("!agent:atlas", [job for job in everything if job.agent_name != "atlas"])
    fleet.execute("update jobs set affinity_key = 'warm cache' where type = 'crawl'")
    everything = (await repository.call(JOBS_LIST, JobQuery(limit=200))).items
    await finds('affinity:"warm cache"', [job for job in everything if job.type == "crawl"])
    await finds('!affinity:"warm cache"', [job for job in everything if job.type != "crawl"])
    await finds("!tool:deploy", [job for job in everything if job.tool != "deploy"])
    await finds("CRAW", [job for job in everything if "craw" in f"{job.type} {job.tool}"])
    await finds("!crawl", [job for job in everything if "crawl" not in f"{job.type} {job.tool}"])
    await finds(str(everything[7].id), [everything[7]])


async def test_a_filter_narrows_what_the_other_fields_say(repository: Repository, fleet: Fleet) -> None:
    query = JobQuery.model_validate(
        {"agent_id": fleet.agent_id("atlas"), "status": ["running"], "filter": "crawl"}
    )
    every = JobQuery(agent_id=fleet.agent_id("atlas"), limit=200)

    found = (await repository.call(JOBS_LIST, query)).items

    of_atlas = (await repository.call(JOBS_LIST, every)).items
    assert list(found) == [job for job in of_atlas if job.status == "running" and "crawl" in job.type]


async def test_ages_are_told_by_the_databases_clock(repository: Repository, fleet: Fleet) -> None:
    now = datetime.now(UTC)
    for type, hours in (("minutes", 0.5), ("hours", 5.0), ("days", 50.0)):
        then = now - timedelta(hours=hours)
        fleet.add_jobs(1, type=type, since=then.isoformat())
        fleet.execute("update jobs set created_at = %s where type = %s", then, type)

    async def types(filter: str) -> set[str]:
        return {job.type for job in await jobs(repository, filter)} & {"minutes", "hours", "days"}

    assert await types("age:<1h") == {"minutes"}
    assert await types("age:>1h age:<1d12h") == {"hours"}
    assert await types("age:>2d") == {"days"}


async def test_a_rare_match_is_found_page_by_page_however_far_away_it_is(
    repository: Repository, fleet: Fleet
) -> None:
    fleet.add_jobs(1, type="needle", since="2030-01-01")
    fleet.add_jobs(WALKED_AT_MOST + 10, since="2031-01-01")
    query = JobQuery(filter="needle")

    first = await repository.call(JOBS_LIST, query)
    second = await repository.call(JOBS_LIST, query.model_copy(update={"after": first.next}))

    assert first.items == ()
    assert first.next is not None
    assert [job.type for job in second.items] == ["needle"]
    assert second.next is None


@pytest.mark.parametrize("filter", [None, "!status:cancelled"])
async def test_a_list_is_read_from_either_end(repository: Repository, filter: str | None) -> None:
    newest = JobQuery(filter=filter, limit=200)
    oldest = newest.model_copy(update={"order": ListOrder.OLDEST, "limit": 4})
    read: list[JobId] = []
    after: str | None = None

    while True:
        page = await repository.call(JOBS_LIST, oldest.model_copy(update={"after": after}))
        read += [job.id for job in page.items]
        if (after := page.next) is None:
            break

    assert read == [job.id for job in (await repository.call(JOBS_LIST, newest)).items][::-1]


@pytest.mark.parametrize("filter", ["stauts:queued", 'agent:"atlas', "status:quewed"])
async def test_what_cannot_be_read_is_refused_and_never_means_everything(filter: str) -> None:
    with pytest.raises(ValidationError, match="at character"):
        JobQuery(filter=filter)


async def test_an_agent_that_is_not_there_is_a_mistake(repository: Repository) -> None:
    with pytest.raises(NotFound, match="no agent nobody"):
        await jobs(repository, "agent:nobody")


async def test_what_matches_a_filter_is_cancelled_and_nothing_else(repository: Repository, fleet: Fleet) -> None:
    fleet.add_jobs(7, type="old-report")
    fleet.add_jobs(7, type="other", since="2031-01-01")
    asked = JobsCancelling(filter="old- !status:cancelled", reason="not needed", batch_size=5)

    first = await repository.call(JOBS_CANCEL_MANY, asked)
    second = await repository.call(JOBS_CANCEL_MANY, asked.model_copy(update={"after": first.next}))

    assert (first.done, second.done, second.next) == (5, 2, None)
    assert fleet.one("select count(*) from jobs where type = 'old-report' and status = 'cancelled'") == 7
    assert fleet.one("select count(*) from jobs where type = 'other' and status = 'queued'") == 7
    told = fleet.one("select metadata ->> 'filter' from audit_log where action = 'job.cancel_many' limit 1")
    assert told == "old- !status:cancelled"


async def test_agents_by_every_qualifier(repository: Repository, fleet: Fleet) -> None:
    every = (await repository.call(AGENTS_LIST, AgentQuery(limit=200))).items

    async def finds(filter: str, holds: list[Agent]) -> None:
        assert holds, f"{filter} should find something"
        assert await agents(repository, filter) == [agent.name for agent in holds]

    await finds("status:error", [agent for agent in every if agent.status == "error"])
    await finds("!status:error", [agent for agent in every if agent.status != "error"])
    await finds("AT", [agent for agent in every if "at" in agent.name])
    await finds(f"host:{every[0].hostname}", [agent for agent in every if agent.hostname == every[0].hostname])
    await finds('capability:"tool:crawler"', [a for a in every if a.name in ("beacon", "harbor")])
    await finds('!capability:"tool:crawler"', [a for a in every if a.name not in ("beacon", "harbor")])
    await finds("owner:ana@example.com", list(every))
    assert await agents(repository, "!owner:ana@example.com") == []
    assert await agents(repository, f"owner:{fleet.user_id('ole@example.com')}") == []
    assert await agents(repository, "", order="newest") == [agent.name for agent in reversed(every)]
    assert await agents(repository, "age:>5200w") == []


async def test_agents_are_walked_in_pages_too(repository: Repository) -> None:
    query = AgentQuery(filter="!status:revoked", limit=2)
    read: list[str] = []
    after: str | None = None

    while True:
        page = await repository.call(AGENTS_LIST, query.model_copy(update={"after": after}))
        assert len(page.items) <= 2
        read += [agent.name for agent in page.items]
        if (after := page.next) is None:
            break

    assert read == await agents(repository, "!status:revoked")
