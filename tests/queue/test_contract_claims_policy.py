"""What a credential and a connector let an agent take."""

import asyncio

import pytest

from agent_console.domain.errors import Unauthorized
from agent_console.domain.secrets import Secret
from agent_console.domain.tokens import NewWorkerToken
from agent_console.repository.operations.credentials import WORKER_TOKENS_MINT
from agent_console.repository.port import Repository
from agent_console.repository.postgres.repository import PostgresRepository, open_direct
from tests.queue.crew import Crew, claim, until
from tests.queue.test_waiting_together import who_sleeps
from tests.support.connectors import make_connector


async def with_token(crew: Crew, **policy: object) -> Repository:
    """Atlas with a worker token of its own."""
    async with open_direct(crew.fleet.working, user="ana@example.com") as admin:
        wanted = NewWorkerToken.model_validate({"worker_id": "atlas"} | policy)
        token = await admin.call(WORKER_TOKENS_MINT, wanted)
    return await crew.with_secret(Secret.parse(token.secret))


async def all_types(agent: Repository, **facts: object) -> list[str]:
    return sorted(job.type for job in (await claim(agent, count=20, **facts)).jobs)


@pytest.fixture
def roomy(crew: Crew) -> Crew:
    crew.fleet.execute("update agents set max_concurrent_jobs = 20 where name = 'atlas'")
    return crew


@pytest.mark.rule("R001-34", "R001-10", "U001-3", "R001-32")
@pytest.mark.parametrize(
    ("allowed", "given"), [(["b", "c"], ["b", "c"]), ([], []), (None, ["a", "b", "c"])], ids=str
)
async def test_a_token_gives_only_the_types_it_allows(
    roomy: Crew, allowed: list[str] | None, given: list[str]
) -> None:
    made = {type: await roomy.enqueue(type, priority=9 if type == "a" else 0) for type in ("a", "b", "c")}
    agent = await with_token(roomy, allowed_job_types=allowed)

    assert await all_types(agent) == given

    left = {type for type, job in made.items() if roomy.status(job.id) == "queued"}
    assert left == set(made) - set(given)


@pytest.mark.rule("R001-35", "U001-3")
async def test_a_token_gives_only_the_repositories_it_allows(roomy: Crew) -> None:
    mine = roomy.id_of("atlas")
    await roomy.enqueue("allowed", repository="org/a")
    await roomy.enqueue("other", repository="org/b")
    await roomy.enqueue("none")
    await roomy.enqueue("bound, other", repository="org/b", bound_agent_id=mine)
    await roomy.enqueue("bound, allowed", repository="org/a", bound_agent_id=mine)
    agent = await with_token(roomy, allowed_repositories=["org/a"])

    assert await all_types(agent) == ["allowed", "bound, allowed"]


@pytest.mark.rule("R001-36", "R001-7")
async def test_a_token_with_capabilities_of_its_own_counts_only_those(roomy: Crew) -> None:
    await roomy.enqueue("of the token", required_capabilities=["gpu"])
    await roomy.enqueue("of the agent", required_capabilities=["local_filesystem"])
    agent = await with_token(roomy, capabilities=["gpu"])

    assert await all_types(agent) == ["of the token"]


@pytest.mark.rule("R003-22")
async def test_a_claim_narrows_what_its_credential_allows_and_never_widens_it(roomy: Crew) -> None:
    for type in ("a", "b", "c"):
        await roomy.enqueue(type)
    mine = roomy.id_of("atlas")
    await roomy.enqueue("d", bound_agent_id=mine)
    agent = await with_token(roomy, allowed_job_types=["a", "b"])
    own_key = await roomy.agent("atlas")

    assert await all_types(agent, allowed_types=["b", "c"]) == ["b"]
    assert await all_types(own_key, allowed_types=[]) == []
    assert await all_types(own_key, allowed_types=["c"]) == ["c"]
    assert await all_types(own_key) == ["a", "d"]


@pytest.mark.rule("R000-104", "R000-105", "R000-106")
async def test_where_a_connectors_credentials_are_decides_who_gets_its_jobs(roomy: Crew) -> None:
    mine = roomy.id_of("atlas")
    atlas = await roomy.agent("atlas")
    async with open_direct(roomy.fleet.working, user="ana@example.com") as admin:
        made = {
            place: (await make_connector(admin, f"{place} one")).id for place in ("server", "agent", "pending")
        }
    for place, connector in made.items():
        roomy.fleet.execute("update connectors set credential_location = %s where id = %s", place, connector)
        await roomy.enqueue(f"{place}", connector_id=connector)
        await roomy.enqueue(f"{place}, bound", connector_id=connector, bound_agent_id=mine)

    without = await all_types(atlas)
    roomy.fleet.execute(
        "insert into agent_connectors (team_id, agent_id, connector_id) values (%s, %s, %s)",
        *(roomy.fleet.team_id(), mine, made["agent"]),
    )
    with_credentials = await all_types(atlas)

    assert without == ["server", "server, bound"]
    assert with_credentials == ["agent", "agent, bound"]
    still = roomy.rows("select type from jobs where status = 'queued' order by type")
    assert [row["type"] for row in still] == ["pending", "pending, bound"]


@pytest.mark.rule("R000-138")
async def test_a_capability_that_is_new_counts_for_the_next_claim(roomy: Crew) -> None:
    atlas = await roomy.agent("atlas")
    await roomy.enqueue("gpu", required_capabilities=["gpu"])
    before = await all_types(atlas)
    set_to = "update agent_runtime set capabilities = %s::jsonb where agent_id = %s"

    roomy.fleet.execute(set_to, '["gpu"]', roomy.id_of("atlas"))
    after = await all_types(atlas)
    roomy.fleet.execute(set_to, "[]", roomy.id_of("atlas"))
    await roomy.enqueue("gpu", required_capabilities=["gpu"])
    lost = await all_types(atlas)

    assert (before, after, lost) == ([], ["gpu"], [])


@pytest.mark.rule("R001-12")
async def test_a_token_that_is_revoked_while_its_bearer_waits_brings_no_job(direct_crew: Crew) -> None:
    worker = await with_token(direct_crew)
    assert isinstance(worker, PostgresRepository)
    waiting = asyncio.create_task(claim(worker, wait_seconds=20))
    await until(lambda: who_sleeps(worker.backend) == 1)

    direct_crew.fleet.execute("update worker_tokens set is_active = false")
    made = await direct_crew.enqueue()
    with pytest.raises(Unauthorized):
        await waiting

    assert direct_crew.status(made.id) == "queued"
