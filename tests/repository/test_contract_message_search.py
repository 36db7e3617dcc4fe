"""Looking for words inside a thread, through both repositories."""

import pytest

from agent_console.domain.errors import Invalid
from agent_console.domain.ids import ThreadId
from agent_console.domain.messages import MessageHit, MessageSearch, SeqPage
from agent_console.repository.operations.messages import MESSAGES_SEARCH
from agent_console.repository.port import Repository
from tests.repository.conftest import OPERATOR, OpenRepository
from tests.support.conversations import add_thread, say
from tests.support.fleet import Fleet


async def search(repository: Repository, thread_id: ThreadId, words: str, **more: object) -> SeqPage[MessageHit]:
    request = MessageSearch.model_validate({"thread_id": thread_id, "words": words, **more})
    return await repository.call(MESSAGES_SEARCH, request)


def snippets(found: SeqPage[MessageHit]) -> list[str]:
    return [hit.snippet for hit in found.items]


async def test_words_are_found_in_their_thread_and_nowhere_else(
    open_repository: OpenRepository, fleet: Fleet
) -> None:
    thread_id, elsewhere = add_thread(fleet), add_thread(fleet)
    for author, content in (
        (OPERATOR, "The PUMP failed"),
        ("atlas", "the pump runs"),
        (None, "valve closed"),
        (OPERATOR, "failed to start the pump"),
    ):
        say(fleet, thread_id, author, content)
        say(fleet, elsewhere, author, content)
    operator = await open_repository(OPERATOR)

    async def found(words: str) -> list[str]:
        return snippets(await search(operator, thread_id, words))

    newest = (await search(operator, thread_id, "pump")).items

    assert [hit.snippet for hit in newest] == ["failed to start the pump", "the pump runs", "The PUMP failed"]
    assert [hit.author for hit in newest] == ["Ole Berg", "atlas", "Ole Berg"]
    assert [hit.snippet[start:end] for hit in newest for start, end in hit.marks] == ["pump", "pump", "PUMP"]
    assert await found("pump failed") == ["failed to start the pump", "The PUMP failed"]
    assert await found('"pump failed"') == ["The PUMP failed"]
    assert await found("pump -failed") == ["the pump runs"]
    assert await found("valve or runs") == ["valve closed", "the pump runs"]
    assert await found("pum") == []
    assert (await search(operator, thread_id, "valve")).items[0].author == "agent-console"


async def test_hits_are_paged_by_seq(open_repository: OpenRepository, fleet: Fleet) -> None:
    thread_id = add_thread(fleet)
    for number in range(5):
        say(fleet, thread_id, content=f"pump {number}")
        say(fleet, thread_id, content="something else")
    operator = await open_repository(OPERATOR)

    first = await search(operator, thread_id, "pump", limit=2)
    second = await search(operator, thread_id, "pump", limit=2, before_seq=first.next_before_seq)
    third = await search(operator, thread_id, "pump", limit=2, after=second.next)

    pages = [snippets(page) for page in (first, second, third)]
    assert pages == [["pump 4", "pump 3"], ["pump 2", "pump 1"], ["pump 0"]]
    assert (third.next, third.next_before_seq) == (None, None)


async def test_nothing_to_look_for_is_refused_and_not_answered_with_everything(
    open_repository: OpenRepository, fleet: Fleet
) -> None:
    thread_id = add_thread(fleet)
    say(fleet, thread_id)
    operator = await open_repository(OPERATOR)

    for words in ("-morning", "!", '""', ":* & | !"):
        with pytest.raises(Invalid):
            await search(operator, thread_id, words)
    for after in ("after:3", "before:x"):
        with pytest.raises(Invalid):
            await search(operator, thread_id, "morning", after=after)

    assert snippets(await search(operator, thread_id, "' OR 1 --")) == []


async def test_a_message_that_names_another_thread_is_not_found_there(
    open_repository: OpenRepository, fleet: Fleet
) -> None:
    thread_id, elsewhere = add_thread(fleet), add_thread(fleet)
    raw = fleet.one("select id::text from threads where id = %s", thread_id)
    say(fleet, elsewhere, content=f"pump {raw} ' {raw}' {thread_id}")
    operator = await open_repository(OPERATOR)

    found = await search(operator, thread_id, "pump")

    assert found.items == ()
    assert len((await search(operator, elsewhere, "pump")).items) == 1
