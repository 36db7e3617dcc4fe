"""What is read most goes a short way through the server; whoever asks can't tell, but by the time it takes."""

import asyncio
import json
from collections.abc import AsyncIterator
from uuid import UUID

import httpx
import pytest
from starlette.responses import Response
from starlette.types import Scope

from agent_console.domain.ids import JobId, ThreadId
from agent_console.domain.messages import MessageQuery
from agent_console.domain.records import Request
from agent_console.domain.secrets import Secret
from agent_console.repository.postgres.passed_through import AS_JSON
from agent_console.repository.postgres.repository import Backend, PostgresRepository
from agent_console.repository.postgres.threads import message_pages
from agent_console.server.app import build_app
from agent_console.server.passed_through import PassedThrough, ShortWay
from tests.support.conversations import OWNER, add_thread, say, say_much
from tests.support.fleet import Fleet
from tests.support.serving import serving

# Importing it is what makes the short way known.
PAGES = message_pages


@pytest.fixture
async def client(fleet: Fleet) -> AsyncIterator[httpx.AsyncClient]:
    # The first answer goes the whole way, where it is written down that its reader was seen.
    fleet.execute("update users set last_seen_at = null")
    headers = {"Authorization": f"Bearer {fleet.token(OWNER)}"}
    async with serving(fleet.working) as url, httpx.AsyncClient(base_url=url, headers=headers) as client:
        yield client


@pytest.fixture
def thread_id(fleet: Fleet) -> ThreadId:
    thread_id = add_thread(fleet)
    say_much(fleet, thread_id, 60)
    say(fleet, thread_id)
    return thread_id


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> list[bytes | None]:
    """What the short way answered, each time it was asked."""
    answered: list[bytes | None] = []
    answering = AS_JSON["messages.list"]

    async def counted(repository: PostgresRepository, asked: MessageQuery) -> bytes | None:
        answered.append(await answering(repository, asked))
        return answered[-1]

    monkeypatch.setitem(AS_JSON, "messages.list", counted)
    return answered


@pytest.mark.parametrize("query", ["", "?limit=7", "?beforeSeq=20&limit=3", "?after_seq=0", "?after=before:30"])
async def test_the_second_answer_comes_the_short_way_and_is_the_same(
    short: list[bytes | None], client: httpx.AsyncClient, thread_id: ThreadId, query: str
) -> None:
    whole = await client.get(f"/v1/threads/{thread_id}/messages{query}")

    through = await client.get(f"/v1/threads/{thread_id}/messages{query}")

    assert short == [None, through.content]
    assert through.json() == whole.json()
    kept = ("content-type", "cache-control", "x-content-type-options")
    assert [through.headers[name] for name in kept] == [whole.headers[name] for name in kept]
    assert through.headers["x-request-id"] != whole.headers["x-request-id"]


@pytest.mark.parametrize(
    "query",
    ["?limit=0", "?limit=many", "?limits=3", "?beforeSeq=3&before_seq=4", "?after=elsewhere"],
)
async def test_a_wrong_question_is_refused_as_ever(
    client: httpx.AsyncClient, thread_id: ThreadId, query: str
) -> None:
    await client.get(f"/v1/threads/{thread_id}/messages")

    refused = await client.get(f"/v1/threads/{thread_id}/messages{query}")

    assert refused.status_code in (400, 422), refused.text
    assert refused.json()["code"] in ("bad_request", "invalid")


@pytest.mark.parametrize("credential", ["", "Bearer", "Bearer nonsense", "Basic {word}", "Bearer {wrong}"])
async def test_a_bad_credential_is_refused_as_ever(
    client: httpx.AsyncClient, thread_id: ThreadId, credential: str
) -> None:
    await client.get(f"/v1/threads/{thread_id}/messages")
    word = client.headers["Authorization"].removeprefix("Bearer ")
    brought = credential.format(word=word, wrong=word[:-1] + ("a" if word[-1] != "a" else "b"))

    refused = await client.get(f"/v1/threads/{thread_id}/messages", headers={"Authorization": brought})

    assert refused.status_code == 401
    assert refused.json()["code"] == "unauthorized"


async def test_a_revoked_token_reads_nothing_from_that_moment_on(
    client: httpx.AsyncClient, fleet: Fleet, thread_id: ThreadId
) -> None:
    path = f"/v1/threads/{thread_id}/messages"
    before = [(await client.get(path)).status_code for _ in range(2)]

    fleet.execute("update operator_tokens set revoked_at = now()")
    after = (await client.get(path)).status_code

    assert (before, after) == ([200, 200], 401)


async def test_an_address_that_is_shut_out_gets_nothing_by_the_short_way(
    short: list[bytes | None], client: httpx.AsyncClient, thread_id: ThreadId
) -> None:
    path = f"/v1/threads/{thread_id}/messages"
    await client.get(path)
    await asyncio.gather(*(client.get(path, headers={"Authorization": "Bearer bad"}) for _ in range(20)))
    short.clear()

    refused = await client.get(path)

    assert (refused.status_code, short) == (429, [])
    assert json.loads(refused.content)["details"]["retry_after"] > 0


@pytest.fixture
async def agent(client: httpx.AsyncClient, fleet: Fleet) -> httpx.AsyncClient:
    """The same client with the key of atlas, who holds a job."""
    key = Secret.mint(fleet.team_id(), fleet.agent_id("atlas"))
    fleet.execute("update agents set api_key_hash = %s where name = 'atlas'", key.hash)
    client.headers["Authorization"] = f"Bearer {key.word}"
    return client


@pytest.fixture
def held(fleet: Fleet) -> str:
    """The path of what is reported on the job that atlas holds."""
    (found,) = fleet.execute("select id from jobs where claimed_by = 'atlas'")
    return f"/v1/jobs/{JobId.of(UUID(str(found[0])))}"


@pytest.fixture
def replies(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int | None]]:
    """What the short way replied to each operation; None when the route had to."""
    noted: list[tuple[str, int | None]] = []
    replying = PassedThrough._reply

    async def reply(self: PassedThrough, scope: Scope, way: ShortWay, asked: Request) -> Response | None:
        answer = await replying(self, scope, way, asked)
        noted.append((way.operation.name, None if answer is None else answer.status_code))
        return answer

    monkeypatch.setattr(PassedThrough, "_reply", reply)
    return noted


async def test_what_an_agent_reports_goes_the_short_way(
    agent: httpx.AsyncClient, held: str, fleet: Fleet, replies: list[tuple[str, int | None]]
) -> None:
    progress = await agent.post(f"{held}/progress", json={"attempt": 1, "percentage": 40})
    done = await agent.post(f"{held}/complete", json={"attempt": 1, "result_summary": "done"})
    again = await agent.post(f"{held}/complete", json={"attempt": 2})

    assert (progress.status_code, done.status_code, again.status_code) == (200, 200, 409)
    assert again.json()["code"] == "not_owner"
    assert replies == [("jobs.progress", 200), ("jobs.complete", 200), ("jobs.complete", 409)]
    assert fleet.one("select count(*) from jobs where result_summary = 'done' and status = 'succeeded'") == 1


WRONG: tuple[tuple[str, dict[str, str], int], ...] = (
    ("{", {}, 400),
    ("[]", {}, 422),
    ('{"attempt": "many"}', {}, 422),
    ('{"attempt": 1, "atempt": 2}', {}, 422),
    ('{"attempt": 1, "job_id": "job_01h455vb4pex5vsknk084sn02q"}', {}, 422),
    ('{"attempt": 1}', {"Content-Type": "text/plain"}, 422),
    ('{"attempt": 1}', {"Authorization": "Bearer nonsense"}, 401),
    ('{"attempt": 1}', {"Authorization": ""}, 401),
)


@pytest.mark.parametrize(("body", "headers", "status"), WRONG)
async def test_a_wrong_report_is_refused_as_ever_and_changes_nothing(
    agent: httpx.AsyncClient, held: str, fleet: Fleet, body: str, headers: dict[str, str], status: int
) -> None:
    described = {"Content-Type": "application/json"} | headers

    refused = await agent.post(f"{held}/complete", content=body, headers=described)

    assert refused.status_code == status, refused.text
    assert set(refused.json()) >= {"code", "message", "hint"}
    assert fleet.one("select status from jobs where claimed_by = 'atlas'") == "running"


async def test_a_body_of_two_kinds_is_of_none(
    agent: httpx.AsyncClient, held: str, replies: list[tuple[str, int | None]]
) -> None:
    kinds = [("Content-Type", "text/plain"), ("Content-Type", "application/json")]

    refused = await agent.post(f"{held}/complete", content='{"attempt": 1}', headers=kinds)

    assert (refused.status_code, replies) == (422, [])


async def test_a_key_that_was_revoked_meanwhile_is_told_so(
    agent: httpx.AsyncClient, held: str, fleet: Fleet, replies: list[tuple[str, int | None]]
) -> None:
    fleet.execute("update agents set revoked_at = now(), revocation_reason = 'lost' where name = 'atlas'")

    refused = await agent.post(f"{held}/progress", json={"attempt": 1, "percentage": 40})

    assert (refused.status_code, refused.json()["details"]["reason"]) == (403, "revoked")


async def test_the_log_names_the_route_though_it_was_not_asked(fleet: Fleet, thread_id: ThreadId) -> None:
    lines: list[str] = []
    backend = Backend(fleet.working)
    transport = httpx.ASGITransport(build_app(backend, access_log=lines.append))
    headers = {"Authorization": f"Bearer {fleet.token(OWNER)}"}
    async with httpx.AsyncClient(transport=transport, base_url="http://x", headers=headers) as client:
        for _ in range(2):
            await client.get(f"/v1/threads/{thread_id}/messages?limit=1")
    await backend.close()

    assert [json.loads(line)["path"] for line in lines] == ["/v1/threads/{thread_id}/messages"] * 2
