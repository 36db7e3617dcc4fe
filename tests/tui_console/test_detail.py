"""One thing, read whole: it follows what happens to it."""

import pytest
from psycopg.types.json import Jsonb

from agent_console.domain.tokens import NewRegistrationToken
from agent_console.repository.operations.credentials import REGISTRATION_TOKENS_MINT
from agent_console.repository.port import Topic
from agent_console.tui.dialogs.operation_form import DoIt, OperationForm
from agent_console.tui.link import Opening
from agent_console.tui.panes.every import MORE
from agent_console.tui.wanted import ListWanted
from tests.support.fleet import Fleet
from tests.tui_console.stage import announce, console, directly, loaded, press, shown_text, until, until_on

pytestmark = pytest.mark.usefixtures("nobody_looks_again")

FIRST_FAILED = ("3", "f", "f", "f", "enter")


async def test_it_follows_its_job_out_of_the_list_behind_it(opening: Opening, fleet: Fleet) -> None:
    app = console(opening)
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await press(pilot, *FIRST_FAILED)
        await until(lambda: "▲ dead_letter" in shown_text(app), "the dead letter")

        fleet.execute("update jobs set status = 'succeeded' where status = 'dead_letter'")
        announce(fleet, Topic.JOBS)

        await until(lambda: "✓ succeeded" in shown_text(app), "its new state")


async def test_what_is_gone_is_said_to_be_gone(fleet: Fleet) -> None:
    fleet.add_jobs(1, status="failed", type="backup", since="2100-01-01")
    app = console(directly(fleet.working))
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await press(pilot, *FIRST_FAILED)
        await until(lambda: app.detail is not None, "the detail")

        fleet.execute("delete from jobs where type = 'backup'")
        announce(fleet, Topic.JOBS)

        await until(lambda: "It no longer exists." in shown_text(app), "the notice")
        assert "backup" in shown_text(app)


async def test_a_long_one_is_scrolled_to_its_end(fleet: Fleet) -> None:
    fleet.execute("update jobs set payload = %s", Jsonb({"lines": list(range(91))}))
    app = console(directly(fleet.working))
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await press(pilot, "3", "enter")
        assert "90" not in shown_text(app)

        await press(pilot, "end")
        at_the_end = shown_text(app)
        await press(pilot, "home", "down", "pagedown", "pageup", "up")

        assert "│     90" in at_the_end
        assert "created" in shown_text(app)


async def test_what_only_its_list_can_tell_anew_is_left_when_something_was_done_to_it(fleet: Fleet) -> None:
    async with directly(fleet.working)(lambda message: None) as other:
        await other.call(REGISTRATION_TOKENS_MINT, NewRegistrationToken(name="for a laptop"))
    app = console(directly(fleet.working))
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        app.pane.post_message(ListWanted(MORE["registration_tokens"]))
        await until(lambda: "for a laptop" in shown_text(app), "the tokens")
        await press(pilot, "enter")
        await until(lambda: app.detail is not None, "the token")

        await press(pilot, "a")
        await until_on(app, OperationForm)
        app.screen.query_one(DoIt).focus()
        await pilot.press("enter")

        await until(lambda: app.detail is None and not app.screen.is_modal, "the list again")
