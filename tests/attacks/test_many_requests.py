"""Five hundred requests a minute: of one agent most reach nobody, and of many the list can still be worked."""

import asyncio
from collections import Counter
from datetime import timedelta
from functools import partial

import pytest
from textual.drivers.headless_driver import HeadlessDriver
from textual.events import AppBlur

from agent_console.domain.delegation import Delegation, Rule
from agent_console.domain.errors import RateLimited
from agent_console.domain.ids import ThreadId
from agent_console.domain.route_replays import RouteQuestion
from agent_console.domain.team_settings import WAITING_PER_AGENT
from agent_console.repository.operations.routes import ROUTES_EXPLAIN
from agent_console.tui.app import ConsoleApp
from agent_console.tui.waiting_count import BELL_SECONDS
from tests.support.asking import add_route, asks, callers, count, facts, set_setting
from tests.support.conversations import add_thread, let_in
from tests.support.fleet import Fleet
from tests.tui_console.approval_stage import STATIONS, at, desk, tell
from tests.tui_console.stage import header_text, list_of, press, row_ids, until
from tests.tui_console.test_approval_bulk import ask_again

FLOOD, THREADS, EACH, ROUNDS = 500, 5, 12, 5
BELL = "\a"
NOBODY_DECIDES = "update approvals set state = 'withdrawn', decided_at = now() where state = 'pending'"


@pytest.mark.rule("U002-15")
async def test_so_many_of_one_agent_wait_and_each_refusal_is_written_down(fleet: Fleet) -> None:
    """In several threads at once, where nothing else makes one wait for the other."""
    most = WAITING_PER_AGENT.default
    threads = [add_thread(fleet) for _ in range(THREADS)]
    for thread_id in threads:
        let_in(fleet, thread_id, "atlas", write=True)
        let_in(fleet, thread_id, "beacon", write=True)
    add_route(fleet, "atlas", "dispatch", "requires_human_approval")
    add_route(fleet, "atlas", "cartographer", "allowed")
    add_route(fleet, "beacon", "dispatch", "requires_human_approval")
    async with callers(fleet, "direct") as crew:
        atlas, beacon = await crew.agent("atlas"), await crew.agent("beacon")

        async def ask_and_ask(thread_id: ThreadId) -> list[object]:
            answers = list[object]()
            for number in range(EACH):
                try:
                    answers.append(await asks(atlas, fleet, thread_id, "dispatch", f"May I? {number}"))
                except RateLimited as refusal:
                    answers.append(refusal)
            return answers

        answers = [one for all_ in await asyncio.gather(*map(ask_and_ask, threads)) for one in all_]
        explained = await (await crew.person()).call(
            ROUTES_EXPLAIN, RouteQuestion(from_agent="atlas", to_agent="dispatch")
        )
        # Nobody else has to wait for it, and neither has what needs no person.
        others = await asks(beacon, fleet, threads[0], "dispatch", "Once.")
        allowed = await asks(atlas, fleet, threads[0], "cartographer", "Once.")
        fleet.execute(NOBODY_DECIDES)
        again = await asks(atlas, fleet, threads[0], "dispatch", "Now there is room.")

    kinds = Counter(type(answer) for answer in answers)
    refused = next(answer for answer in answers if isinstance(answer, RateLimited))
    assert kinds == {Delegation: most, RateLimited: EACH * THREADS - most}
    assert refused.details["rule"] == Rule.WAITING_PER_AGENT
    assert Counter(told["rule"] for told in facts(fleet, "a2a.delegate.rate_limited")) == {
        Rule.WAITING_PER_AGENT: kinds[RateLimited]
    }
    assert explained.rule is Rule.WAITING_PER_AGENT
    assert (others.approval is not None, allowed.run is not None, again.approval is not None) == (True, True, True)
    assert count(fleet, "approvals where state = 'pending'") == [1]


async def test_those_that_come_at_the_same_moment_are_counted_one_after_the_other(fleet: Fleet) -> None:
    threads = [add_thread(fleet) for _ in range(THREADS)]
    for thread_id in threads:
        let_in(fleet, thread_id, "atlas", write=True)
    add_route(fleet, "atlas", "dispatch", "requires_human_approval")
    set_setting(fleet, WAITING_PER_AGENT.name, 1)
    made = list[object]()
    async with callers(fleet, "direct") as crew:
        atlas = await crew.agent("atlas")
        for number in range(ROUNDS):
            words = f"May I? {number}"
            await asyncio.gather(
                *(asks(atlas, fleet, thread_id, "dispatch", words) for thread_id in threads),
                return_exceptions=True,
            )
            made += count(fleet, "approvals where state = 'pending'")
            fleet.execute(NOBODY_DECIDES)

    assert made == [1] * ROUNDS


async def test_whoever_decides_keeps_their_place_and_is_called_once_a_second(
    story: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many agents may still do together what one may not."""
    written: list[str] = []
    monkeypatch.setattr(HeadlessDriver, "write", lambda _driver, data: written.append(data))
    monkeypatch.setenv("TERM", "xterm-256color")
    ask_again(story, STATIONS, 3)
    async with desk(at(story)) as ana:
        table = list_of(ana.app).table
        await press(ana.pilot, "space", "space", "down")
        marks, cursor = table.marks, table.cursor_id
        ana.app.post_message(AppBlur())
        await until(lambda: not ana.app.app_focus, "nobody looks")

        for waiting in range(15, 100, 10):
            ask_again(story, STATIONS, 10)
            tell(story)
            await until(partial(says, ana.app, f"{waiting} approvals"), f"{waiting} approvals")
        within_a_second = written.count(BELL)
        ana.clock.now += timedelta(seconds=BELL_SECONDS)
        for _ in range(10):
            ask_again(story, STATIONS, FLOOD // 10)
            tell(story)
        await until(partial(says, ana.app, "> 99 approvals"), "as many as a header can say")

        assert len(marks) == 2
        assert (table.marks, table.cursor_id) == (marks, cursor)
        assert (within_a_second, written.count(BELL)) == (1, 2)
        await press(ana.pilot, "end")
        await until(lambda: len(row_ids(list_of(ana.app))) > 100, "the end of the list")
        assert table.marks == marks


def says(app: ConsoleApp, words: str) -> bool:
    return words in header_text(app)
