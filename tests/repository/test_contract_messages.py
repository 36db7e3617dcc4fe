"""What is said in a thread: posting, pages, jumps and tails, through both repositories."""

import asyncio
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from pydantic import ValidationError

from agent_console.domain.agents import AgentAsked
from agent_console.domain.errors import Conflict, Forbidden, Invalid, NotFound
from agent_console.domain.ids import AgentId, MessageId, RunId, ThreadId
from agent_console.domain.kinds import ActorType
from agent_console.domain.messages import (
    CONTENT_BYTES,
    Message,
    MessageAsked,
    MessageQuery,
    NewMessage,
    PostedMessage,
    SeqPage,
)
from agent_console.domain.threads import ThreadAsked
from agent_console.repository.operations.agents import AGENTS_DELETE
from agent_console.repository.operations.messages import MESSAGES_GET, MESSAGES_LIST, MESSAGES_POST
from agent_console.repository.operations.threads import THREADS_GET
from agent_console.repository.port import Repository
from agent_console.repository.postgres.database import Database
from agent_console.repository.postgres.threads.saying import post_system_message
from tests.repository.conftest import OPERATOR, VIEWER, OpenRepository
from tests.support.acting_agent import acting_agent
from tests.support.conversations import OTHER, add_person, add_run, add_thread, let_in, say, say_much, told
from tests.support.fleet import Fleet
from tests.support.serving import serving

MARKER = "the password of the pump is xyzzy"


async def post(
    repository: Repository, thread_id: ThreadId, content: str = "hello", **more: object
) -> PostedMessage:
    request = NewMessage.model_validate({"thread_id": thread_id, "content": content, **more})
    return await repository.call(MESSAGES_POST, request)


async def page(repository: Repository, thread_id: ThreadId, **query: object) -> SeqPage[Message]:
    return await repository.call(MESSAGES_LIST, MessageQuery.model_validate({"thread_id": thread_id, **query}))


def words(found: SeqPage[Message]) -> list[str]:
    return [message.content for message in found.items]


@pytest.mark.rule(
    "R002-20", "R002-33", "R002-36", "R002-37", "R002-41", "R002-42", "R002-44", "R002-79", "R002-130",
)  # fmt: skip
async def test_what_is_posted_is_read_back_and_the_trail_tells_no_words(
    open_repository: OpenRepository, fleet: Fleet
) -> None:
    thread_id = add_thread(fleet)
    operator = await open_repository(OPERATOR)
    before = await operator.call(THREADS_GET, ThreadAsked(thread_id=thread_id))

    posted = await post(operator, thread_id, MARKER, payload={"form": MARKER, "n": [1, None, "ü"]})
    (read,) = (await page(operator, thread_id)).items
    one = await operator.call(MESSAGES_GET, MessageAsked(thread_id=thread_id, message_id=posted.id))
    after = await operator.call(THREADS_GET, ThreadAsked(thread_id=thread_id))

    assert PostedMessage.model_validate(read.model_dump()) == posted
    assert one == read
    assert (read.content, read.payload) == (MARKER, {"form": MARKER, "n": [1, None, "ü"]})
    assert (read.author_type, read.author, read.author_agent_id) == (ActorType.HUMAN, "Ole Berg", None)
    assert (read.author_user_id, read.intervention) == (fleet.user_id(OPERATOR), False)
    assert after.updated_at == read.created_at > before.updated_at
    facts = {"recipients": 0, "broadcast": False, "intervention": False}
    assert told(fleet, thread_id) == [("message.create", "message", facts)]
    assert fleet.one("select resource_id from audit_log where action = 'message.create'") == str(posted.id)
    assert fleet.one("select count(*) from audit_log a where a::text like %s", "%xyzzy%") == 0


@pytest.mark.rule("R002-41")
async def test_words_that_are_none_or_too_many_are_refused(fleet: Fleet) -> None:
    thread_id = ThreadId.new()

    for content in ("", " \n\t ", "x" * (CONTENT_BYTES + 1), "ü" * (CONTENT_BYTES // 2 + 1), "a\0b"):
        with pytest.raises(ValidationError):
            NewMessage(thread_id=thread_id, content=content)
    with pytest.raises(ValidationError):
        NewMessage(thread_id=thread_id, content="x", payload={"much": "x" * CONTENT_BYTES})

    assert NewMessage(thread_id=thread_id, content="ü" * (CONTENT_BYTES // 2)).content.startswith("ü")


@pytest.mark.rule("R002-107", "R002-123", "R002-124", "R002-125", "R002-126")
async def test_pages_go_back_without_gap_or_repeat_while_new_messages_come(
    open_repository: OpenRepository, fleet: Fleet
) -> None:
    thread_id, elsewhere = add_thread(fleet), add_thread(fleet)
    for number in range(7):
        say(fleet, thread_id, content=str(number))
        say(fleet, elsewhere, content="elsewhere")
    operator = await open_repository(OPERATOR)

    pages = [await page(operator, thread_id, limit=3)]
    for number in (7, 8):
        await post(operator, thread_id, str(number))
        pages.append(await page(operator, thread_id, limit=3, before_seq=pages[-1].next_before_seq))
    by_cursor = await page(operator, thread_id, limit=3, after=pages[0].next)
    whole = await page(operator, thread_id, limit=9)

    assert [words(one) for one in pages] == [["6", "5", "4"], ["3", "2", "1"], ["0"]]
    assert [one.next_before_seq for one in pages] == [pages[0].items[-1].seq, pages[1].items[-1].seq, None]
    assert by_cursor == pages[1]
    assert pages[2].next is None
    assert (len(whole.items), whole.next, whole.next_before_seq) == (9, None, None)


@pytest.mark.rule("R002-3", "R002-34", "R002-45")
async def test_a_tail_goes_forward_and_a_jump_lands_in_the_middle(
    open_repository: OpenRepository, fleet: Fleet
) -> None:
    thread_id = add_thread(fleet)
    began = datetime(2030, 1, 1, tzinfo=UTC)
    run_id = add_run(fleet, thread_id, ended=True)
    for number in range(9):
        at = began + timedelta(minutes=number)
        say(fleet, thread_id, "atlas", str(number), at=at, run_id=run_id if number % 4 == 0 else None)
    operator = await open_repository(OPERATOR)
    newest = await page(operator, thread_id)
    seqs = {message.content: message.seq for message in newest.items}

    tail = await page(operator, thread_id, after_seq=seqs["4"], limit=2)
    rest = await page(operator, thread_id, after=tail.next)
    end = await page(operator, thread_id, after_seq=rest.next_after_seq)
    around = await page(operator, thread_id, around=seqs["4"], limit=4)
    at_time = await page(operator, thread_id, at_time=began + timedelta(minutes=3, seconds=1), limit=4)
    too_late = await page(operator, thread_id, at_time=began + timedelta(days=1), limit=2)
    of_run = await page(operator, thread_id, run_id=run_id, limit=2)
    older_of_run = await page(operator, thread_id, run_id=run_id, before_seq=of_run.next_before_seq)
    with pytest.raises(Invalid, match="one position"):
        await page(operator, thread_id, after_seq=1, before_seq=9)
    for strange in ("7", "around:7", "before:x", "thr_1"):
        with pytest.raises(Invalid):
            await page(operator, thread_id, after=strange)

    assert words(newest) == [str(number) for number in reversed(range(9))]
    assert (words(tail), words(rest)) == (["5", "6"], ["7", "8"])
    assert (rest.next, rest.next_after_seq) == (None, seqs["8"])
    assert (words(end), end.next_after_seq, end.next_before_seq) == ([], seqs["8"], None)
    assert words(around) == words(at_time) == ["6", "5", "4", "3"]
    assert around.next_before_seq == seqs["3"]
    assert words(too_late) == ["8", "7"]
    assert (words(of_run), words(older_of_run)) == (["8", "4"], ["0"])
    assert {message.run_id for message in of_run.items} == {run_id}


async def test_the_spellings_of_the_address_are_those_that_were_promised(fleet: Fleet) -> None:
    thread_id = add_thread(fleet)
    say_much(fleet, thread_id, 201)
    headers = {"Authorization": f"Bearer {fleet.token(OPERATOR)}"}

    async with serving(fleet.working) as url, httpx.AsyncClient(base_url=url, headers=headers) as client:
        path = f"/v1/threads/{thread_id}/messages"
        first = (await client.get(path)).json()
        second = (await client.get(path, params={"limit": 2, "beforeSeq": first["nextBeforeSeq"]})).json()
        tail = (await client.get(path, params={"afterSeq": first["items"][1]["seq"]})).json()
        most = (await client.get(path, params={"limit": 200})).json()
        too_many = await client.get(path, params={"limit": 201})
        misspelt = await client.get(path, params={"before": 7})

    assert (len(first["items"]), first["nextBeforeSeq"]) == (50, first["items"][-1]["seq"])
    assert [message["content"] for message in second["items"]] == ["line 151", "line 150"]
    assert [message["content"] for message in tail["items"]] == ["line 201"]
    assert tail["nextAfterSeq"] == first["items"][0]["seq"]
    assert len(most["items"]) == 200
    assert (too_many.status_code, misspelt.status_code) == (422, 422)


@pytest.mark.rule("R002-34", "R002-125")
async def test_a_tail_misses_nothing_while_many_write(open_repository: OpenRepository, fleet: Fleet) -> None:
    thread_id = add_thread(fleet)
    writers = [await open_repository(OPERATOR) for _ in range(4)]
    reader = await open_repository(OPERATOR)
    rounds = 5

    async def write(repository: Repository) -> list[int]:
        return [(await post(repository, thread_id)).seq for _ in range(rounds)]

    writing = asyncio.gather(*(write(repository) for repository in writers * 2))
    seen: list[int] = []
    while True:
        ended = writing.done()
        found = await page(reader, thread_id, after_seq=seen[-1] if seen else 0)
        seen += [message.seq for message in found.items]
        if ended and not found.items:
            break
    written = [seq for seqs in await writing for seq in seqs]
    times = fleet.execute("select created_at from messages where thread_id = %s order by seq", thread_id)

    assert seen == sorted(written)
    assert len(seen) == len(writers) * 2 * rounds
    assert times == sorted(times)


@pytest.mark.rule("U002-20", "U002-28")
async def test_a_direct_message_makes_one_run_and_a_broadcast_one_for_each_agent(
    open_repository: OpenRepository, fleet: Fleet
) -> None:
    direct, everyone, nobody = add_thread(fleet), add_thread(fleet), add_thread(fleet)
    for name in ("atlas", "beacon", "juniper"):
        let_in(fleet, everyone, name)
    let_in(fleet, everyone, VIEWER)
    operator = await open_repository(OPERATOR)
    atlas, beacon, harbor = (fleet.agent_id(name) for name in ("atlas", "beacon", "harbor"))

    to_two = await post(operator, direct, to=[atlas, harbor, atlas])
    to_all = await post(operator, everyone, broadcast=True)
    with pytest.raises(Conflict, match="No agent"):
        await post(operator, nobody, broadcast=True)
    with pytest.raises(Invalid):
        await post(operator, everyone, broadcast=True, to=[atlas])
    with pytest.raises(NotFound):
        await post(operator, direct, to=[AgentId.new()])
    with pytest.raises(Conflict, match="revoked"):
        await post(operator, nobody, to=[fleet.agent_id("juniper")])

    (shown,) = (await page(operator, everyone)).items
    asked = fleet.execute("select input_message_id, target_agent_id, thread_id from runs order by seq")
    assert asked == [
        (to_two.id, atlas, direct),
        (to_two.id, harbor, direct),
        (to_all.id, atlas, everyone),
        (to_all.id, beacon, everyone),
    ]
    begun = fleet.execute("select id from runs order by seq")
    assert begun == [(run_id,) for run_id in (*to_two.runs, *to_all.runs)]
    assert fleet.one("select count(*) from jobs where run_id is not null") == 4
    assert [warning.partition(":")[0] for warning in to_two.warnings] == ["harbor is offline"]
    assert to_all.warnings == ("juniper is revoked and was left out.",)
    assert (shown.to_agent_ids, shown.broadcast) == ((atlas, beacon), True)
    assert fleet.one("select count(*) from messages") == 2
    assert [row[0] for row in told(fleet, direct)] == ["run.create", "run.create", "message.create"]


@pytest.mark.rule("U002-27")
async def test_a_person_who_writes_while_an_agent_is_at_work_intervenes(
    open_repository: OpenRepository, fleet: Fleet
) -> None:
    thread_id = add_thread(fleet)
    operator = await open_repository(OPERATOR)
    forged = await post(operator, thread_id, payload={"intervention": True})
    add_run(fleet, thread_id)

    posted = await post(operator, thread_id, "stop that")
    async with acting_agent(operator, fleet) as atlas:
        answered = await post(atlas, thread_id, "stopped")
    fleet.execute("update runs set status = 'cancelled', ended_at = now()")
    afterwards = await post(operator, thread_id)

    marked = [message.intervention for message in (forged, posted, answered, afterwards)]
    assert marked == [False, True, False, False]
    kept = fleet.execute("select intervention from messages order by seq")
    assert [row[0] for row in kept] == marked
    assert [facts["intervention"] for _, _, facts in told(fleet, thread_id) if isinstance(facts, dict)] == marked


@pytest.mark.rule("R002-38", "R002-40", "R002-43", "U002-29")
async def test_an_agent_writes_where_it_acts_and_keeps_its_name(
    open_repository: OpenRepository, fleet: Fleet
) -> None:
    thread_id, taking_part, elsewhere = add_thread(fleet), add_thread(fleet), add_thread(fleet)
    let_in(fleet, taking_part, "beacon", write=True)
    let_in(fleet, elsewhere, "beacon")
    run_id, others_run = add_run(fleet, thread_id, "beacon"), add_run(fleet, taking_part, "atlas")
    operator, admin = await open_repository(OPERATOR), await open_repository()

    async with acting_agent(operator, fleet, "beacon") as beacon:
        reply = await post(beacon, thread_id, "done", run_id=run_id)
        await post(beacon, taking_part, "hello")
        with pytest.raises(Forbidden, match="not write"):
            await post(beacon, elsewhere)
        for forged in (others_run, run_id, RunId.new()):
            with pytest.raises(NotFound, match="run"):
                await post(beacon, taking_part, run_id=forged)
        for asking in ({"broadcast": True}, {"to": [fleet.agent_id("atlas")]}):
            with pytest.raises(Forbidden, match="by writing"):
                await post(beacon, taking_part, **asking)
        fleet.execute("update runs set status = 'succeeded', ended_at = now()")
        with pytest.raises(NotFound):
            await post(beacon, thread_id)
    with pytest.raises(Invalid):
        await post(operator, thread_id, run_id=run_id)
    await admin.call(AGENTS_DELETE, AgentAsked(agent_id=fleet.agent_id("beacon")))

    (read,) = (await page(operator, thread_id)).items
    assert (read.author, read.author_type, read.author_agent_id) == (
        "beacon",
        ActorType.AGENT,
        reply.author_agent_id,
    )
    assert (read.author_user_id, read.run_id) == (None, run_id)
    assert fleet.one("select count(*) from messages") == 2
    assert fleet.one("select run_id from audit_log where resource_id = %s", str(reply.id)) == run_id


async def test_a_repeated_post_is_the_first_message(open_repository: OpenRepository, fleet: Fleet) -> None:
    add_person(fleet)
    thread_id, elsewhere = add_thread(fleet), add_thread(fleet)
    let_in(fleet, thread_id, OTHER, write=True)
    operator, other = await open_repository(OPERATOR), await open_repository(OTHER)
    atlas = fleet.agent_id("atlas")

    first = await post(operator, thread_id, to=[atlas], idempotency_key="k1")
    again, at_once = await asyncio.gather(
        *(post(operator, thread_id, to=[atlas], idempotency_key="k1") for _ in range(2))
    )
    for repository, changed in (
        (operator, {"content": "else"}),
        (operator, {"to": []}),
        (operator, {"payload": {"x": 1}}),
        (other, {}),
    ):
        with pytest.raises(Conflict, match="idempotency key"):
            await post(repository, thread_id, **{"to": [atlas], "idempotency_key": "k1"} | changed)
    in_another_thread = await post(operator, elsewhere, idempotency_key="k1")

    assert again == at_once == first.model_copy(update={"warnings": ()})
    assert len(first.runs) == 1
    assert in_another_thread.id != first.id
    assert fleet.one("select count(*) from runs") == 1
    assert [row[0] for row in told(fleet, thread_id)] == ["run.create", "message.create"]


@pytest.mark.rule("U002-1", "R002-134")
async def test_a_viewer_reads_whatever_the_thread_says(open_repository: OpenRepository, fleet: Fleet) -> None:
    thread_id = add_thread(fleet)
    let_in(fleet, thread_id, VIEWER, write=True, share=True)
    say(fleet, thread_id)
    viewer = await open_repository(VIEWER)

    with pytest.raises(Forbidden):
        await post(viewer, thread_id)
    thread = await viewer.call(THREADS_GET, ThreadAsked(thread_id=thread_id))

    assert (thread.can_write, thread.can_share) == (False, False)
    assert len((await page(viewer, thread_id)).items) == 1


async def test_a_message_of_another_thread_is_not_there(open_repository: OpenRepository, fleet: Fleet) -> None:
    thread_id, elsewhere = add_thread(fleet), add_thread(fleet)
    message_id = say(fleet, elsewhere)
    operator = await open_repository(OPERATOR)

    for one in (message_id, MessageId.new()):
        with pytest.raises(NotFound, match="no message"):
            await operator.call(MESSAGES_GET, MessageAsked(thread_id=thread_id, message_id=one))

    found = await operator.call(MESSAGES_GET, MessageAsked(thread_id=elsewhere, message_id=message_id))
    assert found.id == message_id


@pytest.mark.rule("R002-39")
async def test_the_system_says_something_in_its_own_name(open_repository: OpenRepository, fleet: Fleet) -> None:
    thread_id = add_thread(fleet)
    run_id = add_run(fleet, thread_id)
    database = Database(fleet.working)

    async with database.changing() as connection:
        made = await post_system_message(
            connection, fleet.team_id(), thread_id, "The run was cancelled.", run_id, {"why": "deadline"}
        )
    await database.close()

    (read,) = (await page(await open_repository(OPERATOR), thread_id)).items
    assert (read.id, read.author_type, read.author) == (made, ActorType.SYSTEM, "agent-console")
    assert (read.content, read.payload, read.run_id) == ("The run was cancelled.", {"why": "deadline"}, run_id)
    assert read.intervention is False
