"""Text pasted into a line that takes one: what is kept of it is said."""

from textual import events
from textual.widgets import Input

from agent_console.domain.filters import FILTER_LENGTH
from agent_console.tui.app import ConsoleApp
from tests.support.fleet import Fleet
from tests.tui_console.stage import console, directly, list_of, loaded, press, row_ids, shown_text, until


async def paste(app: ConsoleApp, text: str, kept: str) -> None:
    app.post_message(events.Paste(text))
    await until(lambda: isinstance(app.focused, Input) and app.focused.value == kept, f"{kept!r} is in the line")


async def says(app: ConsoleApp, words: str) -> None:
    await until(lambda: words in shown_text(app), words)


async def test_lines_are_joined_to_one_filter_and_of_words_to_find_the_first_is_kept(fleet: Fleet) -> None:
    dead = fleet.one("select count(*) from jobs where status = 'dead_letter' and type = 'report'")
    app = console(directly(fleet.working), start="jobs")
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)

        await press(pilot, "slash")
        await paste(app, "status:dead_letter\r\n\r\n  type:report\r\n", "status:dead_letter type:report")
        await says(app, "2 lines were pasted: they are joined to one.")
        await press(pilot, "enter")
        assert len(row_ids(list_of(app))) == dead

        # A whole line is one line; what was said of another paste is not said of it.
        await press(pilot, "slash", "ctrl+u")
        await paste(app, "crawl\n", "crawl")
        assert "pasted" not in shown_text(app)
        app.post_message(events.Paste("x" * FILTER_LENGTH))
        await says(app, f"Nothing was pasted: the line takes {FILTER_LENGTH} characters at most.")
        # Of more than fits the first line is a filter; the rest was meant for something else.
        await press(pilot, "ctrl+u")
        await paste(app, "type:report\n" + "aynr3q\n" * FILTER_LENGTH, "type:report")
        await says(app, f"{FILTER_LENGTH + 1} lines don't fit into one: only the first was kept.")
        await press(pilot, "ctrl+u")
        app.post_message(events.Paste("x" * (FILTER_LENGTH + 1) + "\ntype:report"))
        await says(app, f"Nothing was pasted: the line takes {FILTER_LENGTH} characters at most.")
        assert isinstance(app.focused, Input)
        assert app.focused.value == ""
        await press(pilot, "escape", "ctrl+f")
        await paste(app, "report\ncrawl\nmore", "report")
        await says(app, "3 lines were pasted: only the first was kept.")


async def test_the_filter_of_the_audit_trail_takes_lines_too(fleet: Fleet) -> None:
    app = console(directly(fleet.working), start="audit")
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)

        await press(pilot, "slash")
        await paste(app, "action:job.\nsince:2h", "action:job. since:2h")

        await says(app, "2 lines were pasted: they are joined to one.")
