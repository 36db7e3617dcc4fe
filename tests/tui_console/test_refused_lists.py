"""A list that can't be read, or only page by page: it says so, and nobody is asked the same thing for ever."""

import pytest
from textual.pilot import Pilot

from agent_console.repository.postgres import walked_pages
from agent_console.tui.app import ConsoleApp
from agent_console.tui.panes.every import MORE
from agent_console.tui.wanted import ListWanted
from tests.support.conversations import add_run, add_thread, let_in
from tests.support.fleet import Fleet
from tests.tui_console.route_stage import Ear, routes_of
from tests.tui_console.stage import console, directly, list_of, loaded, press, row_ids, shown_text, until
from tests.tui_console.warden import NOT_YOURS, Warden

pytestmark = pytest.mark.usefixtures("nobody_looks_again")


async def steps(app: ConsoleApp, pilot: Pilot[None], count: int = 10) -> None:
    """As many as two and a half seconds bring."""
    for _ in range(count):
        app._step()
        await pilot.pause()
        await app.workers.wait_for_complete([one for one in app.workers if one.group in ("around", "more")])


async def opened(app: ConsoleApp, pilot: Pilot[None], noun: str) -> None:
    app.pane.post_message(ListWanted(MORE[noun]))
    await until(lambda: app.pane.pane_name == noun and app.pane.has_answer, f"the list of {noun}")
    await pilot.pause()


async def test_a_list_that_is_not_for_one_s_role_says_so_once_and_is_asked_once(fleet: Fleet) -> None:
    ear = Ear(directly(fleet.working, user="vera@example.com"))
    app = console(ear)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await loaded(pilot)
        await opened(app, pilot, "registration_tokens")
        await until(lambda: "Loading" not in shown_text(app), "why there is nothing to see")
        asked, told = len(ear.of("registration_tokens.list")), len(app._notifications)

        await steps(app, pilot)
        list_of(app).tick()

        assert (len(ear.of("registration_tokens.list")), len(app._notifications)) == (asked, told) == (1, 1)
        assert "administer" in shown_text(app)


async def test_what_is_refused_further_down_ends_the_search_until_it_is_looked_at_again(fleet: Fleet) -> None:
    fleet.add_jobs(300, since="2031-01-01")
    warden = Warden(directly(fleet.working))
    app = console(warden, start="jobs")
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await loaded(pilot)
        warden.refused.add("jobs.list")
        list_of(app).narrow_to("needle")
        await until(lambda: NOT_YOURS in shown_text(app), "the refusal")
        asked = len(warden.of("jobs.list"))

        await steps(app, pilot)
        assert (len(warden.of("jobs.list")), len(app._notifications)) == (asked, 1)

        warden.refused.clear()
        await press(pilot, "r")
        await until(lambda: "Nothing matches." in shown_text(app), "it is looked at again")


@pytest.mark.parametrize("refused", ["routes.matrix", "routes.get"])
async def test_the_matrix_says_once_what_it_may_not_read(story: Fleet, refused: str) -> None:
    warden = Warden(directly(story.working), refused={refused})
    app = console(warden, start="routes")
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await loaded(pilot)
        look = routes_of(app).matrix_look
        look.matrix.move_to((str(story.agent_id("dispatch")), str(story.agent_id("ember"))))
        await until(lambda: warden.of(refused) != [] and bool(app._notifications), "the refusal")
        await steps(app, pilot, 2)
        asked = len(warden.of(refused))

        await steps(app, pilot)

        assert (len(warden.of(refused)), len(app._notifications)) == (asked, 1)
        assert look.has_answer


async def test_nobody_is_told_that_there_is_nothing_before_all_was_looked_at(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walked_pages, "WALKED_AT_MOST", 2)
    hers, not_hers = add_thread(fleet), add_thread(fleet)
    let_in(fleet, hers, "vera@example.com")
    seen = add_run(fleet, hers)
    for _ in range(30):
        add_run(fleet, not_hers)
    app = console(directly(fleet.working, user="vera@example.com"))
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await opened(app, pilot, "runs")
        first = shown_text(app)

        await until(lambda: row_ids(list_of(app)) == [str(seen)], "the run that lies far down")

        assert "No runs here." not in first


async def test_a_search_for_a_word_ends_with_its_word_and_where_nothing_comes(fleet: Fleet) -> None:
    fleet.add_jobs(1, type="needle", since="2030-01-01")
    fleet.add_jobs(1_000, since="2033-01-01")
    warden = Warden(directly(fleet.working))
    app = console(warden, start="jobs")
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await loaded(pilot)
        pane = list_of(app)
        first = pane.table.cursor_id
        pane.find_first("needle")
        pane.find_word("")
        await steps(app, pilot, 3)
        assert pane.table.cursor_id == first, "whoever ends a search is not taken anywhere"

        warden.refused.add("jobs.list")
        asked = len(warden.of("jobs.list"))
        pane.find_first("needle")
        await until(lambda: bool(app._notifications), "the refusal")
        await pilot.pause()
        assert len(warden.of("jobs.list")) <= asked + 2, "it is not asked for again and again"
