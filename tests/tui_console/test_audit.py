"""The audit trail under an operator's eyes: live, paused, filtered, and never a line too few or too many."""

import psycopg
import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from agent_console.domain.ids import AuditId, JobId, RunId, ThreadId
from agent_console.tui.app import ConsoleApp
from agent_console.tui.link import Opening
from agent_console.tui.panes.audit import live as audit_pane
from agent_console.tui.panes.detail_screen import DetailScreen
from tests.attacks.hostile_strings import HOSTILE, dangers
from tests.support.fleet import Fleet
from tests.support.trail import act, seal
from tests.tui_console.audit_stage import (
    Told,
    every_act,
    fill,
    found_id,
    seal_and_tell,
    tell,
)
from tests.tui_console.conftest import BOTH_WAYS
from tests.tui_console.stage import (
    ADMIN,
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
from tests.tui_console.test_hostile import storable

LATE = "select append_audit(%s, 'system', null, null, 'late', 'job.create', 'job', 'late')"


@BOTH_WAYS
async def test_who_stays_on_the_newest_sees_every_act_as_it_is_sealed(opening: Opening, fleet: Fleet) -> None:
    first = act(fleet)
    app = console(opening, start="audit")
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)

        second = act(fleet)
        seal_and_tell(fleet)

        await until(lambda: row_ids(list_of(app)) == [str(second), str(first)], "the new act on top")
        assert list_of(app).table.cursor_id == str(second)
        await until(lambda: "sealed to 2" in shown_text(app), "the chain")
        assert "● following" in shown_text(app)
        assert "all sealed" in shown_text(app)


@pytest.mark.usefixtures("nobody_looks_again")
async def test_a_paused_list_stands_still_counts_and_loses_nothing(fleet: Fleet) -> None:
    fill(fleet, 30)
    seal(fleet)
    app = console(directly(fleet.working), start="audit")
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await press(pilot, "down", "down", "down")
        before, place = row_ids(list_of(app)), list_of(app).table.cursor_id
        with psycopg.connect(fleet.administration) as slow:
            slow.execute(LATE, (fleet.team_id(),))
            fill(fleet, 41)
            seal_and_tell(fleet)
            slow.commit()
        seal_and_tell(fleet)

        await until(lambda: "‖ paused, 42 new" in shown_text(app), "how many came in")
        assert (row_ids(list_of(app)), list_of(app).table.cursor_id) == (before, place)

        await press(pilot, "home")
        await until(lambda: row_ids(list_of(app)) == every_act(fleet), "every act, each once, the late one too")
        assert list_of(app).table.cursor_index == 0
        assert "● following" in shown_text(app)


@pytest.mark.usefixtures("nobody_looks_again")
async def test_who_comes_up_from_below_finds_what_is_new_above_and_keeps_the_place(fleet: Fleet) -> None:
    fill(fleet, 10)
    seal(fleet)
    app = console(directly(fleet.working), start="audit")
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await press(pilot, "down")
        newest = row_ids(list_of(app))[0]
        fill(fleet, 3)
        seal_and_tell(fleet)
        await until(lambda: "‖ paused, 3 new" in shown_text(app), "how many came in")

        await press(pilot, "up")
        await until(lambda: row_ids(list_of(app)) == every_act(fleet), "the new acts above")
        assert (list_of(app).table.cursor_id, list_of(app).table.cursor_index) == (newest, 3)
        assert "‖ paused, 0 new" in shown_text(app)

        await press(pilot, "up", "up", "up")
        await until(lambda: "● following" in shown_text(app), "on the newest it follows")


@pytest.mark.usefixtures("nobody_looks_again")
async def test_after_a_long_pause_the_list_begins_anew_and_nothing_is_left_out_between(fleet: Fleet) -> None:
    fill(fleet, 10)
    seal(fleet)
    app = console(directly(fleet.working), start="audit")
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await loaded(pilot)
        await press(pilot, "p")
        fill(fleet, 600)
        seal_and_tell(fleet)
        await until(lambda: "‖ paused, 600 new" in shown_text(app), "how many came in, page by page")

        await press(pilot, "down", "up")
        await until(lambda: len(row_ids(list_of(app))) > 10, "the newest")
        shown = row_ids(list_of(app))
        assert shown == every_act(fleet)[: len(shown)]
        await until(lambda: "the list begins at the newest" in shown_text(app), "a word about it")


async def test_the_key_that_pauses_says_follow_once_it_is_paused(fleet: Fleet) -> None:
    fill(fleet, 10)
    seal(fleet)
    app = console(directly(fleet.working), start="audit")
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await until(lambda: "p Pause" in shown_text(app), "what it does to a list that follows")

        await press(pilot, "p")
        await until(lambda: "p Follow" in shown_text(app), "what it does to one that is paused")
        assert "Pause" not in shown_text(app)
        await press(pilot, "question_mark")
        await until(lambda: "audit.pause" in shown_text(app), "the help")
        [line] = [line for line in shown_text(app).splitlines() if "audit.pause" in line]
        assert "Follow" in line

        await press(pilot, "escape", "p")
        await until(lambda: "p Pause" in shown_text(app), "it follows again")


async def test_who_follows_for_days_keeps_a_bounded_list(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_pane, "KEPT", 100)
    fill(fleet, 90)
    seal(fleet)
    app = console(directly(fleet.working), start="audit")
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await press(pilot, "pagedown", "pagedown", "end")
        await until(lambda: len(row_ids(list_of(app))) == 90, "all of them")
        fill(fleet, 40)
        seal_and_tell(fleet)

        newest = every_act(fleet)
        await press(pilot, "home")
        await until(lambda: row_ids(list_of(app))[0] == newest[0], "the newest")
        shown = row_ids(list_of(app))
        assert (len(shown) <= 100, shown == newest[: len(shown)]) == (True, True)

        await press(pilot, "end")
        await until(lambda: row_ids(list_of(app)) == every_act(fleet), "the rest again, for who scrolls there")


async def test_filters_are_asked_of_the_database_and_can_be_typed(opening: Opening, fleet: Fleet) -> None:
    mine = act(fleet, action="agent.drain")
    blocked = act(fleet, action="a2a.delegate.blocked", decision="block", reason="no route")
    allowed = act(fleet, action="a2a.delegate.allowed", decision="allow")
    fill(fleet, 3)
    seal_and_tell(fleet)
    everything = every_act(fleet)
    app = console(opening, start="audit")

    def shows(*wanted: AuditId) -> bool:
        return row_ids(list_of(app)) == [str(audit_id) for audit_id in wanted]

    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await until(lambda: row_ids(list_of(app)) == everything, "all of them")
        for wanted, words in (((blocked,), "1 blocked"), ((allowed,), "1 allowed")):
            await press(pilot, "f")
            assert shows(*wanted)
            assert words in shown_text(app)
        await press(pilot, "f")
        assert shows(allowed, blocked, mine)
        assert cells(list_of(app), str(mine))[2] == "◇ you"

        await type_filter(pilot, "action:a2a.")
        await until(lambda: shows(allowed, blocked), "by what was done")
        await type_filter(pilot, "who:me decision:block")
        await until(lambda: shows(blocked), "by who and how it was decided")
        await type_filter(pilot, "since:soon")
        await until(lambda: "soon is no time" in shown_text(app), "what is wrong")
        assert shows(blocked)
        await pilot.press("escape")
        await type_filter(pilot, "who:atlas")
        await until(lambda: row_ids(list_of(app)) == everything[:3], "by an agent that was seen")
        await type_filter(pilot, "")
        await until(lambda: row_ids(list_of(app)) == everything, "all of them again")


async def type_filter(pilot: Pilot[None], text: str) -> None:
    await pilot.press("slash")
    pilot.app.screen.query_one("AuditFilterLine Input", Input).value = text
    await pilot.press("enter")


async def test_every_hostile_word_of_an_act_is_shown_as_harmless_text(fleet: Fleet) -> None:
    words = [f"-{storable(text)[:60]}" for text in HOSTILE.values()]
    for text in words:
        fleet.execute(
            "select append_audit(%s, 'agent', null, %s, %s, 'job.create', %s, %s, '{}', null, null, 'block', %s)",
            *(fleet.team_id(), fleet.agent_id("atlas"), *(text,) * 4),
        )
    app = console(directly(fleet.working), start="audit")
    async with app.run_test(size=(200, 60)) as pilot:
        await loaded(pilot)
        seen = shown_text(app)
        for key in ("end", "enter"):
            await press(pilot, key)
            seen += shown_text(app)

        assert isinstance(app.screen, DetailScreen)
        assert r"\x1b]52;c" in seen
        assert dangers(seen.replace("\n", "")) == []


async def test_an_act_leads_to_what_it_is_about_and_a_thing_to_its_acts(story: Fleet) -> None:
    thread = ThreadId.of(found_id(story, ThreadId, "select id from threads order by id limit 1"))
    run = RunId.of(found_id(story, RunId, "select id from runs order by id limit 1"))
    job = JobId.of(found_id(story, JobId, "select id from jobs where type = 'deploy' order by id limit 1"))
    told = [
        Told("job.create", "job", str(job), 30, person=ADMIN, thread=thread, run=run),
        Told("job.cancel", "job", str(job), 20, agent="atlas", reason="not needed"),
        Told("job.create", "job", "job_other", 10, person=ADMIN),
    ]
    acts = [str(audit_id) for audit_id in tell(story, *told)]
    seal(story)
    app = console(directly(story.working), start="audit")
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await press(pilot, "down", "down")
        await press(pilot, "T")
        await until(lambda: about(app) == str(thread), "the thread")
        await press(pilot, "escape", "U")
        await until(lambda: about(app) == str(run), "the run")
        await press(pilot, "escape", "J")
        await until(lambda: about(app) == str(job), "the job")
        await press(pilot, "l")
        await until(lambda: row_ids(list_of(app)) == [acts[1], acts[0]], "its trail")
        assert "Audit trail of deploy" in shown_text(app)
        await press(pilot, "escape")
        await until(lambda: about(app) == str(job), "the job again, from which it was asked for")
        await press(pilot, "escape")
        await until(lambda: app.detail is None, "the way back to where it began")
        assert list_of(app).kind.name == "audit"
        assert row_ids(list_of(app)) == list(reversed(acts))


def about(app: ConsoleApp) -> str:
    return "" if app.detail is None else app.detail.about.split()[-1]


async def test_letters_of_a_word_to_find_are_letters(fleet: Fleet) -> None:
    fill(fleet, 30, "grant_")
    seal(fleet)
    app = console(directly(fleet.working), start="audit")
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await press(pilot, "ctrl+f", *"grag", "home", "x")

        assert isinstance(app.focused, Input)
        assert app.focused.value == "xgrag"


async def test_a_word_far_down_is_found_while_the_list_follows(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_pane, "KEPT", 50)
    needle = act(fleet, action="agent.drain")
    fill(fleet, 600)
    seal(fleet)
    app = console(directly(fleet.working), start="audit")
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)

        list_of(app).find_first("agent.drain")

        await until(lambda: list_of(app).table.cursor_id == str(needle), "the act far below what was kept")
