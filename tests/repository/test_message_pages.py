"""A page of messages that PostgreSQL puts into JSON is the same page, for the same readers and nobody else."""

import json
from collections.abc import AsyncIterator

import pytest
from psycopg.types.json import Jsonb

from agent_console.domain.ids import MessageId, RunId, ThreadId
from agent_console.domain.messages import MessageQuery, NewMessage
from agent_console.domain.secrets import Secret
from agent_console.repository.operations.messages import MESSAGES_LIST, MESSAGES_POST
from agent_console.repository.postgres.identify import by_name, by_token
from agent_console.repository.postgres.repository import Backend, PostgresRepository
from agent_console.repository.postgres.threads.message_pages import messages_as_json, shown_id
from tests.support.conversations import OTHER, OWNER, add_person, add_run, add_thread, let_in, say
from tests.support.fleet import Fleet

STRANGE = 'words "in quotes" \\ back, \t tab \n line, žluťoučký 🐎 </script>'
MARKED = "\x01msg" + 32 * "0"


@pytest.fixture
async def backend(fleet: Fleet) -> AsyncIterator[Backend]:
    backend = Backend(fleet.working)
    yield backend
    await backend.close()


@pytest.fixture
def thread_id(fleet: Fleet) -> ThreadId:
    """Somebody else asked an agent, which answered; a person asked two agents; nobody said something strange."""
    thread_id = add_thread(fleet)
    add_person(fleet)
    let_in(fleet, thread_id, OTHER, write=True)
    let_in(fleet, thread_id, "atlas", write=True)
    say(fleet, thread_id, OTHER, STRANGE)
    say(fleet, thread_id, OTHER, MARKED)
    answer = say(fleet, thread_id, "atlas", "an answer")
    payload = Jsonb({"rows": [1, 2.5, None, {"ü": "\\"}]})
    fleet.execute("update messages set payload = %s where id = %s", payload, answer)
    say(fleet, thread_id, None, "the system's own words")
    return thread_id


def caller(backend: Backend, fleet: Fleet, email: str = OWNER) -> PostgresRepository:
    return PostgresRepository(backend, by_token(Secret.parse(fleet.token(email))))


async def used(repository: PostgresRepository, thread_id: ThreadId) -> PostgresRepository:
    """The first call of a minute writes down that the token is used."""
    await repository.call(MESSAGES_LIST, MessageQuery(thread_id=thread_id))
    return repository


QUERIES: tuple[dict[str, object], ...] = (
    {},
    {"limit": 2},
    {"limit": 3},
    {"limit": 1, "after": "before:{last}"},
    {"before_seq": "{last}"},
    {"after_seq": 0, "limit": 2},
    {"after_seq": 0},
    {"after": "after:{first}", "limit": 1},
)


@pytest.mark.parametrize("given", QUERIES, ids=str)
async def test_it_is_the_same_page(
    backend: Backend, fleet: Fleet, thread_id: ThreadId, given: dict[str, object]
) -> None:
    reader = await used(caller(backend, fleet), thread_id)
    seqs = dict(zip(("first", "last"), fleet.execute("select min(seq), max(seq) from messages")[0], strict=True))
    filled = {name: value.format(**seqs) if isinstance(value, str) else value for name, value in given.items()}
    query = MessageQuery.model_validate({"thread_id": thread_id, **filled})

    page = await messages_as_json(reader, query)

    assert page is not None
    whole = (await reader.call(MESSAGES_LIST, query)).model_dump_json()
    assert json.loads(page) == json.loads(whole)
    assert [*map(list, json.loads(page)["items"])] == [*map(list, json.loads(whole)["items"])]


async def test_whom_a_message_asked_and_what_it_came_out_of_is_there(backend: Backend, fleet: Fleet) -> None:
    thread_id = add_thread(fleet)
    let_in(fleet, thread_id, "atlas", write=True)
    reader = await used(caller(backend, fleet), thread_id)
    agents = (fleet.agent_id("atlas"), fleet.agent_id("beacon"))
    await reader.call(MESSAGES_POST, NewMessage(thread_id=thread_id, content="both of you", to=agents[:1]))
    say(fleet, thread_id, "atlas", "done", run_id=add_run(fleet, thread_id))
    query = MessageQuery(thread_id=thread_id)

    page = await messages_as_json(reader, query)

    assert page is not None
    assert json.loads(page) == json.loads((await reader.call(MESSAGES_LIST, query)).model_dump_json())
    assert str(agents[0]) in page.decode()


async def test_a_thread_that_is_shared_is_read_by_all(backend: Backend, fleet: Fleet) -> None:
    thread_id = add_thread(fleet, visibility="shared")
    say(fleet, thread_id)
    reader = await used(caller(backend, fleet, "vera@example.com"), thread_id)

    assert await messages_as_json(reader, MessageQuery(thread_id=thread_id)) is not None


TAKEN_AWAY = (
    "update operator_tokens set revoked_at = now()",
    "update operator_tokens set expires_at = now() - interval '1 second'",
    "update operator_tokens set last_used_at = now() - interval '2 minutes'",
    "update operator_tokens set token_hash = repeat('0', 64)",
    "update users set is_active = false where email = 'ole@example.com'",
    "update users set last_seen_at = now() - interval '2 minutes' where email = 'ole@example.com'",
    "update thread_participants set can_read = false, can_write = false, can_share = false",
    "delete from thread_participants where user_id is not null",
    "delete from messages",
)


@pytest.mark.parametrize("change", TAKEN_AWAY)
async def test_whoever_is_not_plainly_let_in_goes_the_whole_way(
    backend: Backend, fleet: Fleet, thread_id: ThreadId, change: str
) -> None:
    reader = await used(caller(backend, fleet), thread_id)
    query = MessageQuery(thread_id=thread_id)
    before = await messages_as_json(reader, query)
    fleet.execute(change)

    after = await messages_as_json(reader, query)

    assert before is not None
    assert after is None


async def test_an_administrator_who_is_not_let_in_goes_the_whole_way(
    backend: Backend, fleet: Fleet, thread_id: ThreadId
) -> None:
    """There the visit is written down."""
    admin = await used(caller(backend, fleet, "ana@example.com"), thread_id)

    assert await messages_as_json(admin, MessageQuery(thread_id=thread_id)) is None


async def test_another_teams_token_reads_nothing(backend: Backend, fleet: Fleet, thread_id: ThreadId) -> None:
    fleet.add_team("other")
    stranger = caller(backend, fleet, "admin@other.example")
    fleet.execute("update operator_tokens set last_used_at = now()")
    fleet.execute("update users set last_seen_at = now()")

    assert await messages_as_json(stranger, MessageQuery(thread_id=thread_id)) is None


@pytest.mark.parametrize(
    "given",
    [
        {"around": 1},
        {"at_time": "2026-03-01T03:00:00Z"},
        {"run_id": RunId(int=7)},
        {"before_seq": 1, "after_seq": 1},
    ],
)
async def test_other_positions_go_the_whole_way(
    backend: Backend, fleet: Fleet, thread_id: ThreadId, given: dict[str, object]
) -> None:
    reader = await used(caller(backend, fleet), thread_id)

    assert await messages_as_json(reader, MessageQuery.model_validate({"thread_id": thread_id, **given})) is None


async def test_a_direct_session_goes_the_whole_way(backend: Backend, thread_id: ThreadId) -> None:
    direct = PostgresRepository(backend, by_name("example", OWNER))

    assert await messages_as_json(direct, MessageQuery(thread_id=thread_id)) is None


@pytest.mark.parametrize("number", [0, 1, 2**128 - 1, 0x0193_0000_0000_7ABC_9DEF_0123_4567_89AB])
def test_an_id_is_written_as_people_see_it(number: int) -> None:
    assert shown_id("msg", f"{number:032x}") == str(MessageId(int=number))
