"""Many agents in one statement: fair, and nobody pays for another's mistake or for another's leaving."""

import asyncio
from collections.abc import Hashable, Sequence

import pytest

from agent_console.domain.errors import ConsoleError, DatabaseUnavailable, Internal, Invalid, TimedOut
from agent_console.repository.postgres.queue.gathering import AT_MOST, Gatherer
from tests.queue.crew import until

CALLERS = 200


class Book:
    """Answers with what was asked, remembers every batch, and opens the door only when told to."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.open = asyncio.Event()
        self.open.set()

    async def answer(self, group: Hashable, asked: Sequence[str]) -> list[str | ConsoleError]:
        self.batches.append(list(asked))
        await self.open.wait()
        if any(word.startswith("poison") for word in asked):
            raise Invalid("one of them can't be stored")
        if any(word.startswith("outage") for word in asked):
            raise DatabaseUnavailable("away")
        if any(word.startswith("bug") for word in asked):
            raise RuntimeError("a mistake of ours")
        return [Invalid(word) if word.startswith("refused") else word for word in asked]


def gatherer(book: Book, at_once: int = 1) -> Gatherer[str, str, str]:
    return Gatherer(book.answer, at_once=at_once)


async def test_the_first_is_done_at_once_and_the_rest_together_in_the_order_they_came() -> None:
    book = Book()
    gathering = gatherer(book)
    words = [f"{number}" for number in range(CALLERS)]

    answers = await asyncio.gather(*(gathering.add("team", word, word) for word in words))

    assert answers == words
    assert [word for batch in book.batches for word in batch] == words
    assert max(map(len, book.batches)) == AT_MOST
    assert len(book.batches) <= CALLERS // AT_MOST + 2


async def test_nobody_starves_while_others_keep_asking() -> None:
    book = Book()
    gathering = gatherer(book)
    done: list[str] = []

    async def keeps_asking(name: str) -> None:
        for turn in range(3):
            await gathering.add("team", name, f"{name} {turn}")
            done.append(name)

    await asyncio.gather(*(keeps_asking(f"{number}") for number in range(CALLERS)))

    assert sorted(set(done[:CALLERS])) == sorted(f"{number}" for number in range(CALLERS))


async def test_two_of_one_key_are_never_in_one_statement_and_keep_their_order() -> None:
    book = Book()
    gathering = gatherer(book, at_once=2)
    words = [f"{number} of one" for number in range(5)]

    await asyncio.gather(
        *(gathering.add("team", "one", word) for word in words),
        *(gathering.add("team", f"other {n}", f"{n}") for n in range(3)),
    )

    of_one = [[word for word in batch if word in words] for batch in book.batches]
    assert [word for batch in of_one for word in batch] == words
    assert max(map(len, of_one)) == 1


@pytest.mark.parametrize("mistake", ["poison", "refused"])
async def test_one_mistake_among_a_hundred_stays_its_own(mistake: str) -> None:
    book = Book()
    gathering = gatherer(book)
    words = [f"{number}" for number in range(50)] + [mistake] + [f"{number}" for number in range(50, 100)]

    answers = await asyncio.gather(*(gathering.add("team", word, word) for word in words), return_exceptions=True)

    failed = [word for word, answer in zip(words, answers, strict=True) if isinstance(answer, BaseException)]
    assert failed == [mistake]
    assert [answer for answer in answers if isinstance(answer, str)] == [w for w in words if w != mistake]


async def test_an_outage_is_told_to_everybody_without_asking_again_for_each() -> None:
    book = Book()
    gathering = gatherer(book)

    answers = await asyncio.gather(
        *(gathering.add("team", f"{n}", f"outage {n}") for n in range(50)), return_exceptions=True
    )

    assert all(isinstance(answer, DatabaseUnavailable) for answer in answers)
    assert len(book.batches) <= 2


async def test_a_mistake_of_our_own_leaves_nobody_waiting() -> None:
    book = Book()
    gathering = gatherer(book)
    words = [f"{number}" for number in range(CALLERS)]
    words[10] = "bug"

    answers = await asyncio.wait_for(
        asyncio.gather(*(gathering.add("team", word, word) for word in words), return_exceptions=True), 30
    )

    assert len(answers) == CALLERS
    assert isinstance(answers[10], (RuntimeError, Internal))
    assert answers[-1] == words[-1]


async def test_whoever_leaves_before_the_statement_is_not_in_it() -> None:
    book = Book()
    gathering = gatherer(book)
    book.open.clear()
    first = asyncio.create_task(gathering.add("team", "first", "first"))
    await until(lambda: bool(book.batches))
    leaving = asyncio.create_task(gathering.add("team", "leaving", "leaving"))
    staying = asyncio.create_task(gathering.add("team", "staying", "staying"))
    await asyncio.sleep(0)

    leaving.cancel()
    await asyncio.sleep(0)
    book.open.set()

    assert [await first, await staying] == ["first", "staying"]
    assert book.batches == [["first"], ["staying"]]


async def test_whoever_leaves_during_the_statement_takes_nothing_from_the_others() -> None:
    book = Book()
    gathering = gatherer(book)
    book.open.clear()
    asking = [asyncio.create_task(gathering.add("team", name, name)) for name in ("a", "b", "c")]
    await until(lambda: bool(book.batches))

    asking[0].cancel()
    asking[1].cancel()
    await asyncio.sleep(0)
    book.open.set()

    assert await asking[2] == "c"
    assert await gathering.add("team", "d", "d") == "d"


async def test_a_second_statement_begins_only_when_the_first_can_not_take_everybody() -> None:
    book = Book()
    gathering = gatherer(book, at_once=2)
    book.open.clear()
    asking = [asyncio.create_task(gathering.add("team", f"{n}", f"{n}")) for n in range(AT_MOST)]
    await until(lambda: bool(book.batches))
    few = len(book.batches)
    asking += [asyncio.create_task(gathering.add("team", f"{n}", f"{n}")) for n in range(AT_MOST, 3 * AT_MOST)]
    await until(lambda: len(book.batches) > 1)

    book.open.set()
    await asyncio.gather(*asking)

    assert few == 1
    assert sum(map(len, book.batches)) == 3 * AT_MOST


async def test_whoever_still_waits_when_the_program_stops_is_told_so() -> None:
    book = Book()
    gathering = gatherer(book)
    book.open.clear()
    asking = [asyncio.create_task(gathering.add("team", f"{n}", f"{n}")) for n in range(2 * AT_MOST)]
    await until(lambda: bool(book.batches))

    await gathering.close()
    answers = await asyncio.wait_for(asyncio.gather(*asking, return_exceptions=True), 30)

    assert all(isinstance(answer, TimedOut) for answer in answers)


async def test_who_comes_back_while_two_workers_end_together_is_served() -> None:
    book = Book()
    book.open.clear()
    gathering = Gatherer(book.answer, at_most=1, at_once=2, crowd=0)

    async def asks(name: str, times: int) -> list[str]:
        return [await gathering.add("team", name, f"{name} {turn}") for turn in range(times)]

    both = asyncio.gather(asks("atlas", 2), asks("beacon", 1))
    await until(lambda: len(book.batches) == 2)
    book.open.set()

    async with asyncio.timeout(10):
        answers = await both
    assert [*answers] == [["atlas 0", "atlas 1"], ["beacon 0"]]


async def test_a_crowd_is_shared_by_those_who_are_free_and_a_few_are_not() -> None:
    book = Book()
    book.open.clear()
    gathering = Gatherer(book.answer, at_once=2, crowd=6)

    async def batches_of(callers: int) -> list[int]:
        book.batches.clear()
        book.open.clear()
        asking = [asyncio.create_task(gathering.add("team", f"{n}", f"{n}")) for n in range(callers)]
        await until(lambda: sum(map(len, book.batches)) == callers)
        book.open.set()
        await asyncio.gather(*asking)
        return [len(batch) for batch in book.batches]

    assert await batches_of(6) == [6]
    assert await batches_of(8) == [8]
    assert await batches_of(32) == [16, 16]


async def test_who_comes_when_the_program_has_stopped_is_refused_and_nothing_more_is_begun() -> None:
    book = Book()
    gathering = gatherer(book)
    waiting = asyncio.gather(*(gathering.add("team", f"{n}", f"{n}") for n in range(200)), return_exceptions=True)
    await asyncio.sleep(0)
    await gathering.close()
    begun = len(book.batches)

    with pytest.raises(TimedOut):
        await gathering.add("team", "late", "late")

    assert all(isinstance(answer, str | TimedOut) for answer in await waiting)
    assert any(isinstance(answer, TimedOut) for answer in await waiting)
    assert len(book.batches) == begun
