"""Reading a long thread: both ways, in jumps, and live at its end."""

import pytest

from agent_console.domain.messages import NewMessage
from agent_console.repository.operations.messages import MESSAGES_POST
from agent_console.repository.port import Topic
from agent_console.tui.link import Opening
from agent_console.tui.panes.conversation.held import MOST_HELD, Gap
from tests.support.conversations import say_much
from tests.support.fleet import Fleet
from tests.tui_console.conftest import SomebodyElse
from tests.tui_console.conversation_stage import held_seqs, long_thread, opened, seqs_of, type_in, words
from tests.tui_console.stage import announce, console, directly, shown_text, until

pytestmark = pytest.mark.usefixtures("nobody_looks_again")


@pytest.mark.rule("R002-125")
async def test_scrolling_up_reaches_the_beginning_without_a_jump(opening: Opening, fleet: Fleet) -> None:
    """Every message is seen once and in order; what is on the screen moves by what was scrolled, no line more."""
    thread_id = long_thread(fleet, 1_000)
    app = console(opening)
    async with app.run_test(size=(80, 90)) as pilot:
        screen = await opened(pilot, thread_id)
        page = screen.talk.size.height - 1
        seen = list(words(app))
        assert seen[-1] == "line 1000"

        while "The thread begins here." not in shown_text(app):
            before = words(app)
            await pilot.press("pageup")
            await until(lambda: "being loaded" not in shown_text(app), "the older page")
            after = words(app)
            moved = {after[line] - y for line, y in before.items() if line in after}
            assert moved <= {page} or "The thread begins here." in shown_text(app)
            seen = [*(line for line in after if line not in before), *seen]

        assert seen == [f"line {number}" for number in range(1, 1_001)]
        assert held_seqs(screen) == seqs_of(fleet, thread_id)


async def test_at_the_end_it_follows_and_elsewhere_it_counts(
    opening: Opening, fleet: Fleet, somebody_else: SomebodyElse
) -> None:
    thread_id = long_thread(fleet, 100)
    app = console(opening)
    async with app.run_test(size=(80, 24)) as pilot, somebody_else() as other:
        screen = await opened(pilot, thread_id)
        for number in range(5):
            await other.call(MESSAGES_POST, NewMessage(thread_id=thread_id, content=f"live {number}"))
        await until(lambda: "live 4" in words(app), "what was said just now")
        assert "● following" in shown_text(app)

        await pilot.press("pageup", "pageup")
        await pilot.pause()
        shown = words(app)
        for number in range(5, 8):
            await other.call(MESSAGES_POST, NewMessage(thread_id=thread_id, content=f"live {number}"))
        await until(lambda: "↓ 3 new below" in shown_text(app), "a word about what is out of sight")
        assert words(app) == shown

        await pilot.press("end")
        await until(lambda: "● following" in shown_text(app), "the end again")
        assert held_seqs(screen)[-8:] == seqs_of(fleet, thread_id)[-8:]
        assert len(set(held_seqs(screen))) == len(held_seqs(screen))


async def test_a_jump_leaves_a_gap_that_says_so_and_can_be_read_from_both_sides(fleet: Fleet) -> None:
    thread_id = long_thread(fleet, 1_000)
    app = console(directly(fleet.working))
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, thread_id)
        await pilot.press("number_sign")
        await type_in(pilot, "300")
        await pilot.press("enter")
        await until(lambda: "line 300" in words(app), "message 300")
        assert screen.talk.cursor_key == "#300"

        while "not shown" not in shown_text(app):
            await pilot.press("pagedown")
        assert "⋯ up to 600 messages not shown (#351 to #950), Enter loads ⋯" in shown_text(app)
        while screen.talk.cursor_key != "gap 350":
            await pilot.press("down")
        await pilot.pause()
        above = words(app)["line 350"]
        await pilot.press("enter")
        await until(lambda: screen.talk.cursor_key == "#351", "the first of what was left out")
        await until(lambda: "line 351" in words(app), "its words")
        assert words(app)["line 351"] - words(app)["line 350"] == 3
        assert above - words(app)["line 350"] in (0, 1), "a gap has a line less than a message"

        await pilot.press("end")
        while screen.talk.cursor_key != "gap 450":
            await pilot.press("pageup" if "not shown" not in shown_text(app) else "up")
        await pilot.pause()
        below = words(app)["line 951"]
        await pilot.press("enter")
        await until(lambda: screen.talk.cursor_key == "#950", "the last of what was left out")
        await until(lambda: "line 950" in words(app), "its words")
        assert words(app)["line 951"] - below in (0, 1), "a gap has a line less than a message"
        assert held_seqs(screen) == sorted(set(held_seqs(screen)))

        held, filled = held_seqs(screen), Gap(350, 951)
        screen.talk.read_into(filled)
        await app.workers.wait_for_complete([worker for worker in app.workers if worker.node is screen.talk])
        assert held_seqs(screen) == held, "a key that comes after the gap was filled does nothing"


async def test_what_is_far_away_is_let_go_and_shown_as_a_gap(fleet: Fleet) -> None:
    thread_id = long_thread(fleet, 1_600)
    app = console(directly(fleet.working))
    async with app.run_test(size=(80, 150)) as pilot:
        screen = await opened(pilot, thread_id)

        while "line 300" not in words(app):
            await pilot.press("pageup")
            await until(lambda: "being loaded" not in shown_text(app), "the older page")

        assert len(held_seqs(screen)) <= MOST_HELD
        assert held_seqs(screen)[-1] == 1_600
        assert [gap.before - 1 for gap in screen.talk.reading.held.gaps] == [1_550]


async def test_who_was_away_for_long_gets_the_newest_and_a_gap(fleet: Fleet) -> None:
    thread_id = long_thread(fleet, 60)
    app = console(directly(fleet.working))
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, thread_id)

        say_much(fleet, thread_id, 900, "meanwhile")
        announce(fleet, Topic.MESSAGES)
        await until(lambda: "meanwhile 900" in words(app), "the newest")

        (gap,) = screen.talk.reading.held.gaps
        assert (gap.after, gap.before) == (260, 911)


async def test_searching_goes_from_hit_to_hit_through_the_whole_thread(fleet: Fleet) -> None:
    thread_id = long_thread(fleet, 400)
    say_much(fleet, thread_id, 3, "needle")
    say_much(fleet, thread_id, 400, "more")
    app = console(directly(fleet.working))
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, thread_id)
        await pilot.press("slash")
        await type_in(pilot, "needle")
        await pilot.press("enter")
        await until(lambda: "1 of 3" in shown_text(app), "the first hit")
        assert screen.talk.cursor_key == "#403"

        await pilot.press("n")
        await until(lambda: "2 of 3" in shown_text(app), "the next hit")
        assert screen.talk.cursor_key == "#402"
        await pilot.press("N")
        await until(lambda: "1 of 3" in shown_text(app), "the hit before")

        await pilot.press("slash")
        await type_in(pilot, "line")
        await pilot.press("enter")
        await until(lambda: "1 of > 50" in shown_text(app), "no count that is not known")
        assert screen.talk.cursor_key == "#400"
        await pilot.press("escape")
        await until(lambda: "of > 50" not in shown_text(app), "the search is over")
        assert app.screen is screen


async def test_a_time_and_a_seq_of_another_thread_lead_to_the_nearest_message(fleet: Fleet) -> None:
    elsewhere = long_thread(fleet, 5)
    thread_id = long_thread(fleet, 400)
    app = console(directly(fleet.working))
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, thread_id)
        first = seqs_of(fleet, thread_id)[0]

        await pilot.press("number_sign")
        await type_in(pilot, str(seqs_of(fleet, elsewhere)[0]))
        await pilot.press("enter")
        await until(lambda: f"the nearest is #{first}" in shown_text(app), "a word about it")
        assert screen.talk.cursor_key == f"#{first}"

        screen.talk.tell("")
        await pilot.press("number_sign")
        await type_in(pilot, "2030-01-01 00:00:00.200")
        await pilot.press("enter")
        await until(lambda: "line 200" in words(app), "what was said at that time")
        assert screen.talk.message is not None
        assert screen.talk.message.content == "line 200"

        await pilot.press("number_sign")
        await type_in(pilot, "soon")
        await pilot.press("enter")
        await until(lambda: "no place in a thread" in shown_text(app), "a refusal")
