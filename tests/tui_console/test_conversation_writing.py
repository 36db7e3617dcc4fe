"""Writing to a thread: nothing typed is lost, nothing is said twice, and nothing is said by accident."""

import pytest
from textual import events
from textual.widgets import SelectionList

from agent_console.domain.ids import ThreadId
from agent_console.repository.operations.messages import MESSAGES_POST
from agent_console.repository.port import REFETCH
from agent_console.tui.dialogs.recipients import RecipientsDialog
from agent_console.tui.link import LinkState, Opening
from agent_console.tui.panes.conversation.sending import NO_ANSWER, NO_CONNECTION
from tests.support.fleet import Fleet
from tests.tui_console.conversation_stage import long_thread, opened, thread_called, type_in, words
from tests.tui_console.dropped_line import over_a_dropped_line
from tests.tui_console.stage import ADMIN, console, directly, press, shown_text, until, until_on

OFFLINE = "update agent_runtime set presence = 'offline', error_message = null where agent_id = %s"


def said(fleet: Fleet, thread_id: ThreadId) -> list[object]:
    rows = fleet.execute("select content from messages where thread_id = %s order by seq", thread_id)
    return [content for (content,) in rows]


async def test_what_is_typed_and_pasted_is_sent_with_a_key_of_its_own(opening: Opening, fleet: Fleet) -> None:
    thread_id = long_thread(fleet, 1)
    app = console(opening)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, thread_id)
        await pilot.press("c")
        await type_in(pilot, "qS4")
        await pilot.press("enter")
        app.post_message(events.Paste("[b]a\nS\nb"))
        await until(lambda: screen.writing.draft.text == "qS4\n[b]a\nS\nb", "the pasted words")
        assert said(fleet, thread_id) == ["line 1"]

        await pilot.press("f5")
        await until(lambda: "[b]a" in words(app), "what was said")

        assert said(fleet, thread_id) == ["line 1", "qS4\n[b]a\nS\nb"]
        assert not screen.writing.draft.says_something


@pytest.mark.rule("U002-28")
async def test_a_draft_outlives_its_screen_and_goes_to_whom_it_was_meant_for(story: Fleet) -> None:
    thread_id = thread_called(story, "Nightly build is red")
    story.execute(OFFLINE, story.agent_id("ember"))
    app = console(directly(story.working), start="threads")
    async with app.run_test(size=(80, 24)) as pilot:
        await opened(pilot, thread_id)
        await pilot.press("c", "f4")
        await until_on(app, RecipientsDialog)
        chosen = app.screen.query_one(SelectionList)
        chosen.highlighted = next(
            place
            for place in range(chosen.option_count)
            if "ember" in str(chosen.get_option_at_index(place).prompt)
        )
        await pilot.press("space")
        # Seen without colours too.
        await until(lambda: "[x] ember" in shown_text(app), "a tick")
        assert "[ ] every agent of the thread" in shown_text(app)
        await pilot.press("enter")
        await until(lambda: "To ember" in shown_text(app), "whom it goes to")
        await type_in(pilot, "Look again")
        await pilot.press("escape", "escape")
        await until(lambda: app.detail is None, "the list")
        await press(pilot, "2", "4")

        screen = await opened(pilot, thread_id)
        assert "✎ draft kept" in shown_text(app)
        await pilot.press("S")
        await until(lambda: not screen.writing.draft.says_something, "it was said")

        asked = story.execute(
            "select a.name from runs r join agents a on a.id = r.target_agent_id"
            " join messages m on m.id = r.input_message_id where m.content = 'Look again'"
        )
        assert asked == [("ember",)]
        told = "ember is offline: its run is queued until it comes, or you choose another."
        assert [note.message for note in app._notifications] == [told]


async def test_an_answer_that_is_lost_does_not_say_it_twice(fleet: Fleet) -> None:
    thread_id = long_thread(fleet, 1)
    app = console(over_a_dropped_line(fleet, MESSAGES_POST))
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, thread_id)
        await pilot.press("c")
        await type_in(pilot, "once")
        await pilot.press("f5")
        await until(lambda: "it may have been said" in shown_text(app), "the truth about it")
        assert screen.writing.draft.text == "once"
        await until(lambda: app.link.status.state is LinkState.UP, "up again")

        await pilot.press("f5")
        await until(lambda: not screen.writing.draft.says_something, "the answer")

        assert said(fleet, thread_id) == ["line 1", "once"]


async def test_a_lost_connection_and_a_refusal_keep_the_draft_and_say_why(fleet: Fleet) -> None:
    thread_id = long_thread(fleet, 1)
    app = console(directly(fleet.working))
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, thread_id)
        await pilot.press("c")
        await type_in(pilot, "half a")
        fleet.execute("update users set is_active = false where email = %s", ADMIN)
        screen.heard(REFETCH)
        await until(lambda: app.link.status.state is LinkState.LOST, "lost")
        assert screen.talk.stale

        await type_in(pilot, " word")
        await pilot.press("f5")
        await until(lambda: "There is no connection; the draft is kept." in shown_text(app), "why not")
        assert screen.writing.draft.text == "half a word"

        fleet.execute("update users set is_active = true where email = %s", ADMIN)
        await until(lambda: app.link.status.state is LinkState.UP, "up again")
        fleet.execute("update threads set archived_at = now() where id = %s", thread_id)
        await pilot.press("f5")
        await until(lambda: "is archived; nothing more is written" in shown_text(app), "the refusal")
        assert screen.writing.draft.text == "half a word"
        assert said(fleet, thread_id) == ["line 1"]


async def test_a_read_only_profile_offers_nothing_to_write(story: Fleet) -> None:
    app = console(directly(story.working), read_only=True)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, thread_called(story, "Nightly build is red"))

        await pilot.press("c", "S")
        await pilot.pause()

        assert not screen.writing.is_open
        assert "Write" not in shown_text(app).splitlines()[-1]


async def test_what_was_refused_is_not_told_to_be_perhaps_said(fleet: Fleet) -> None:
    thread_id = long_thread(fleet, 1)
    app = console(directly(fleet.working))
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, thread_id)
        await pilot.press("c", "x")
        fleet.execute("update users set is_active = false where email = %s", ADMIN)
        await pilot.press("f5")
        await until(lambda: screen.writing.problem not in ("", "Sending …"), "what became of it")

        assert screen.writing.problem not in (NO_ANSWER, NO_CONNECTION)
        assert said(fleet, thread_id) == ["line 1"]
