"""Filtering a list by typing, going to a word in it, and turning it round."""

import pytest
from textual import events
from textual.pilot import Pilot
from textual.widgets import Input

from agent_console.domain.ids import JobId
from agent_console.repository.operations import AGENTS_LIST
from agent_console.tui import known_values
from agent_console.tui.app import ConsoleApp
from agent_console.tui.link import Opening
from agent_console.tui.widgets.filter_line import FilterLine
from tests.support.fleet import Fleet
from tests.tui_console.stage import (
    all_jobs,
    cells,
    console,
    directly,
    list_of,
    loaded,
    press,
    row_ids,
    shown_text,
    until,
)
from tests.tui_console.warden import Warden


def line_of(app: ConsoleApp) -> FilterLine:
    return app.screen.query_one(FilterLine)


async def typed(pilot: Pilot[None], text: str) -> None:
    """Key by key, as somebody types it."""
    names = {" ": "space", ":": "colon", "!": "exclamation_mark", "_": "underscore", ">": "greater_than_sign"}
    await pilot.press(*(names.get(letter, letter) for letter in text))
    await pilot.pause()


async def test_a_filter_is_typed_applied_changed_and_cleared(opening: Opening) -> None:
    app = console(opening, start="jobs")
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)

        await press(pilot, "slash")
        await typed(pilot, "status:de")
        assert "Tab dead_letter" in shown_text(app)
        await press(pilot, "tab", "enter")

        states = {cells(list_of(app), row_id)[0] for row_id in row_ids(list_of(app))}
        assert states == {"▲ dead_letter"}
        assert f"{len(row_ids(list_of(app)))} of all jobs match status:dead_letter" in shown_text(app)
        assert app.focused is list_of(app).table

        await press(pilot, "2", "3")
        assert "match status:dead_letter" in shown_text(app), "it is remembered by its pane"

        await press(pilot, "escape")
        assert "25 all jobs" in shown_text(app)


async def test_what_cannot_be_read_stays_in_the_line_with_its_place(fleet: Fleet) -> None:
    app = console(directly(fleet.working), start="jobs")
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await press(pilot, "slash")
        await typed(pilot, "crawl stauts:failed")

        await press(pilot, "enter")

        assert "did you mean status:?" in shown_text(app)
        assert line_of(app).is_open
        assert app.screen.query_one(Input).cursor_position == len("crawl ")
        await press(pilot, "escape")
        assert "25 all jobs" in shown_text(app), "nothing was filtered"


async def test_agents_and_types_are_offered_as_they_are_there(fleet: Fleet) -> None:
    app = console(directly(fleet.working), start="jobs")
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await press(pilot, "slash")

        await typed(pilot, "agent:at")
        await until(lambda: line_of(app).offered == ("atlas",), "the agents are offered")
        await press(pilot, "tab")
        await typed(pilot, " type:cr")
        await until(lambda: "crawl" in line_of(app).offered, "the types are offered")
        await press(pilot, "escape", "slash")

        assert app.screen.query_one(Input).value == "", "what was left was not applied"


async def test_what_is_offered_is_asked_for_each_time_and_again_after_a_failure(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    warden = Warden(directly(fleet.working))
    app = console(warden, start="jobs")
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await press(pilot, "slash")
        await typed(pilot, "agent:at")
        await until(lambda: line_of(app).offered == ("atlas",), "the agents are offered")
        await press(pilot, "escape")

        fleet.execute("update agents set name = 'atoll' where name = 'ember'")
        await press(pilot, "slash")
        await typed(pilot, "agent:at")
        await until(lambda: line_of(app).offered == ("atlas", "atoll"), "those of now")
        await press(pilot, "escape")

        warden.refused.add(AGENTS_LIST.name)
        monkeypatch.setattr(known_values, "PAGE_LIMIT_MAX", 2)
        await press(pilot, "slash")
        await typed(pilot, "agent:")
        await until(lambda: bool(app._notifications), "why there are none")
        warden.refused.clear()
        await typed(pilot, "a")
        await until(lambda: "Only the first 2 are offered." in shown_text(app), "how many")


async def test_lines_typed_before_come_back_with_up(fleet: Fleet) -> None:
    app = console(directly(fleet.working), start="jobs")
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        for text in ("crawl", "status:failed"):
            await press(pilot, "slash", "ctrl+u")
            await typed(pilot, text)
            await press(pilot, "enter")

        await press(pilot, "slash", "ctrl+u")
        await typed(pilot, "rep")
        line = app.screen.query_one(Input)
        before = [line.value]
        for key in ("up", "up", "up", "down", "down"):
            await press(pilot, key)
            before.append(line.value)

        assert before == ["rep", "status:failed", "crawl", "crawl", "status:failed", "rep"]


async def test_nothing_that_matches_says_so_and_how_to_go_on(fleet: Fleet) -> None:
    app = console(directly(fleet.working), start="jobs")
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await press(pilot, "slash")
        await typed(pilot, "zebra")

        await press(pilot, "enter")
        await until(lambda: "Nothing matches." in shown_text(app), "the list is empty")

        assert "0 of all jobs match zebra" in shown_text(app)


async def test_a_match_far_down_is_searched_for_page_by_page(fleet: Fleet) -> None:
    fleet.add_jobs(1, type="needle", since="2030-01-01")
    fleet.add_jobs(7_000, since="2031-01-01")
    app = console(directly(fleet.working), start="jobs")
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await press(pilot, "slash")
        await typed(pilot, "needle")
        await press(pilot, "enter")

        await until(lambda: "1 of all jobs match needle" in shown_text(app), "all of it was searched")

        assert "searching" not in shown_text(app)
        assert len(row_ids(list_of(app))) == 1


async def test_n_goes_from_match_to_match_without_filtering(fleet: Fleet) -> None:
    fleet.add_jobs(1, type="needle", since="2030-01-01")
    fleet.add_jobs(30, since="2031-01-01")
    fleet.add_jobs(1, type="needle", since="2032-01-01")
    fleet.add_jobs(250, since="2033-01-01")
    needles = [
        JobId(str(row[0])) for row in fleet.execute("select id from jobs where type = 'needle' order by id")
    ]
    app = console(directly(fleet.working), start="jobs")
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        table = list_of(app).table
        await press(pilot, "ctrl+f")
        await typed(pilot, "needle")

        await press(pilot, "enter")
        await until(lambda: table.cursor_id == str(needles[1]), "the first, behind the rows that were there")
        await press(pilot, "n")
        await until(lambda: table.cursor_id == str(needles[0]), "the next one")
        await press(pilot, "N")
        await until(lambda: table.cursor_id == str(needles[1]), "back to the first")

        assert "all jobs" in shown_text(app)
        await press(pilot, "escape", "n")
        assert app.screen.is_modal, "n is what it was"


async def test_o_turns_the_list_round_and_keeps_its_filter(fleet: Fleet) -> None:
    app = console(directly(fleet.working), start="jobs")
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)

        await press(pilot, "o")

        assert row_ids(list_of(app)) == all_jobs(fleet)[::-1]
        assert "oldest first" in shown_text(app)
        await press(pilot, "o")
        assert row_ids(list_of(app)) == all_jobs(fleet)
        assert "oldest first" not in shown_text(app)


async def test_what_is_done_to_all_that_match_begins_with_the_filter(fleet: Fleet) -> None:
    app = console(directly(fleet.working), start="jobs")
    async with app.run_test(size=(80, 40)) as pilot:
        await loaded(pilot)
        await press(pilot, "slash")
        await typed(pilot, "crawl !status:succeeded")
        await press(pilot, "enter")

        await pilot.press("n")
        await until(lambda: app.screen.is_modal, "what can be done")
        await pilot.press("down", "down", "enter")
        await until(lambda: "crawl !status:succeeded" in shown_text(app), "the form holds it")


async def test_what_is_typed_fast_behind_the_slash_is_text_and_never_an_action(fleet: Fleet) -> None:
    app = console(directly(fleet.working), start="jobs")
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)

        for key, letter in (("slash", "/"), ("f", "f"), ("o", "o"), ("q", "q")):
            app.post_message(events.Key(key, letter))
        await until(
            lambda: any(line.value == "foq" for line in app.screen.query(Input)), "the letters are in the line"
        )

        assert "25 all jobs" in shown_text(app)
        assert list_of(app).order is None
