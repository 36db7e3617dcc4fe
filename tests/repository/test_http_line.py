"""What the HTTP repository puts on the line, and what it makes of what comes back."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass

import pytest

from agent_console.domain.errors import (
    CannotConnect,
    ConfigError,
    ConsoleError,
    DatabaseUnavailable,
    Internal,
    Invalid,
    NotFound,
    RateLimited,
    TimedOut,
)
from agent_console.domain.records import Nothing
from agent_console.domain.team_settings import MAX_HOPS, SettingChange
from agent_console.repository.http.repository import HttpRepository
from agent_console.repository.logs import AUDIT_LOG, messages_of
from agent_console.repository.operations import ME
from agent_console.repository.operations.people import SETTINGS_LIST, SETTINGS_SET
from agent_console.repository.port import REFETCH
from tests.repository.conftest import ADMIN
from tests.support.conversations import add_thread, say
from tests.support.fleet import Fleet
from tests.support.serving import serving

EVENTS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


@dataclass(frozen=True)
class Peer:
    """Whatever else may answer at the address; it answers every request with the same."""

    port: int
    asked: asyncio.Event

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@asynccontextmanager
async def answering(answer: bytes, *, port: int = 0) -> AsyncIterator[Peer]:
    asked = asyncio.Event()

    async def heed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()
        asked.set()

    async with await asyncio.start_server(heed, "127.0.0.1", port) as server:
        yield Peer(server.sockets[0].getsockname()[1], asked)


def refusing(refusal: ConsoleError) -> bytes:
    body = json.dumps(refusal.body()).encode()
    head = f"HTTP/1.1 {refusal.status} No\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return head.encode() + body


@pytest.mark.rule("U002-31")
@pytest.mark.parametrize("around", ["{} ", " {}", "{}\t\n", "{}\N{NO-BREAK SPACE}"])
async def test_blanks_around_a_token_are_none_of_it(around: str, fleet: Fleet) -> None:
    word = around.format(fleet.token(ADMIN))

    async with serving(fleet.working) as url, HttpRepository(url, word) as repository:
        me = await repository.call(ME, Nothing())

    assert me.team == "example"


@pytest.mark.rule("U002-31", "R000-54")
@pytest.mark.parametrize(
    "wrong", ["", " ", "{0} {0}", "{0}\n{0}", "{0}\0", "{0}…", "«{0}»", "{0}\ud800", "Bearer {0}"]
)
def test_what_can_be_no_token_is_refused_before_it_is_sent_and_not_shown(wrong: str, fleet: Fleet) -> None:
    word = fleet.token(ADMIN)

    with pytest.raises(ConfigError) as refused:
        HttpRepository("http://127.0.0.1:1", wrong.format(word))

    assert word not in str(refused.value.body())
    assert refused.value.hint == "Copy the whole word again, or mint a new one."


@pytest.mark.rule("U002-31", "R000-54")
async def test_a_token_that_somebody_sends_back_is_not_shown(fleet: Fleet) -> None:
    word = fleet.token(ADMIN)
    said_again = f"HTTP/1.1 200 OK\r\n> Authorization: Bearer {word}\r\n\r\n".encode()

    async with answering(said_again) as echo, HttpRepository(echo.url, word) as repository:
        with pytest.raises(CannotConnect) as refused:
            await repository.call(ME, Nothing())

    assert word not in str(refused.value.body())


@pytest.mark.parametrize(
    "name", ["max_hops?x", "max_hops#x", "..", ".", "a/b", "max%5fhops", "größe", "\x01", "a b"]
)
async def test_a_name_in_a_path_is_one_step_of_it_whatever_it_holds(name: str, fleet: Fleet) -> None:
    async with serving(fleet.working) as url, HttpRepository(url, fleet.token(ADMIN)) as repository:
        with pytest.raises(NotFound):
            await repository.call(SETTINGS_SET, SettingChange(name=name, value=5))
        settings = (await repository.call(SETTINGS_LIST, Nothing())).items

    assert all(setting.value == setting.default for setting in settings)


async def test_a_name_comes_out_of_its_path_as_it_went_in(fleet: Fleet) -> None:
    async with serving(fleet.working) as url, HttpRepository(url, fleet.token(ADMIN)) as repository:
        changed = await repository.call(SETTINGS_SET, SettingChange(name=MAX_HOPS.name, value=5))

    assert (changed.name, changed.value) == (MAX_HOPS.name, 5)


async def test_a_name_that_no_address_can_carry_is_refused() -> None:
    change = SettingChange.model_construct({"name", "value"}, name="\ud800", value=5)

    async with HttpRepository("http://127.0.0.1:1", None) as repository:
        with pytest.raises(Invalid):
            await repository.call(SETTINGS_SET, change)


async def test_a_topic_that_this_program_does_not_know_is_a_reason_to_fetch_again() -> None:
    told = b'event: change\ndata: {"topic": "rockets", "id": null}\n\n'

    async with (
        answering(EVENTS + told) as newer,
        HttpRepository(newer.url, None) as repository,
        aclosing(repository.changes()) as changes,
    ):
        assert await anext(changes) == REFETCH


async def test_a_row_that_this_program_does_not_know_ends_the_log_with_a_sentence() -> None:
    told = b'id: 7\nevent: audit\ndata: {"strange": true}\n\n'

    async with (
        answering(EVENTS + told) as newer,
        HttpRepository(newer.url, None) as repository,
        aclosing(repository.follow(AUDIT_LOG)) as rows,
    ):
        with pytest.raises(CannotConnect, match="not an agent-console server of a version this program knows"):
            await anext(rows)


@pytest.mark.rule("U001-8")
@pytest.mark.parametrize(
    "passing",
    [DatabaseUnavailable("x"), RateLimited("x", details={"retry_after": 5}), Internal("x"), TimedOut("x")],
    ids=lambda refusal: refusal.code,
)
async def test_a_refusal_that_passes_does_not_end_a_log(passing: ConsoleError, fleet: Fleet) -> None:
    thread_id = add_thread(fleet)
    async with serving(fleet.working) as url:
        owner = HttpRepository(url, fleet.token(ADMIN))
        followed = owner.follow(messages_of(thread_id), after=0)
        await anext(followed)
    say(fleet, thread_id, content="meanwhile")
    coming = asyncio.create_task(anext(followed))
    port = int(url.rpartition(":")[2])

    async with answering(refusing(passing), port=port) as away:
        await away.asked.wait()
    async with serving(fleet.working, port=port), asyncio.timeout(30):
        row = (await coming).row

    await followed.aclose()
    await owner.close()
    assert row is not None
    assert row.content == "meanwhile"
