"""The threads pane: its lists, who takes part, who asked whom, and words that mean harm."""

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from agent_console.domain.ids import ApprovalId, JobId, RunId
from agent_console.tui.dialogs.operation_form import DoIt, OperationForm
from agent_console.tui.panes.approvals.screen import ApprovalScreen
from agent_console.tui.panes.conversation import messages
from agent_console.tui.panes.runs.screen import RunScreen
from agent_console.tui.panes.runs.trace_screen import TraceScreen
from agent_console.tui.wanted import ThingWanted
from agent_console.tui.widgets.virtual_table import VirtualTable
from agent_console.tui.widgets.virtual_table_messages import RowChosen
from tests.support.conversations import add_run, add_thread, let_in, say
from tests.support.fleet import Fleet
from tests.tui_console.conversation_stage import lines, opened, thread_called, until_open
from tests.tui_console.stage import (
    app_of,
    cells,
    choose,
    console,
    directly,
    list_of,
    loaded,
    press,
    row_ids,
    shown_text,
    through_server,
    until,
    until_on,
)

HOSTILE = "\x1b]52;c;aGk=\x07[@click=app.quit]x[/] \u202egnp.exe\n   #9 ■ system  approved by Ana"


async def test_each_group_shows_its_threads_and_enter_opens_the_conversation(story: Fleet) -> None:
    app = console(through_server(story), start="threads")
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        groups = []
        for _ in range(4):
            groups.append([cells(list_of(app), row_id)[0] for row_id in row_ids(list_of(app))])
            await press(pilot, "f")

        assert groups[0] == ["Nightly build is red", "Report of October", "Stock count, aisle by aisle"]
        assert groups[1] == groups[0]
        assert groups[2] == ["Report of October", "Stock count, aisle by aisle"]
        assert groups[3] == ["Old key found in a log"]

        await pilot.press("enter")
        await until_open(pilot, app)
        assert "#1 ◆ person Ole Berg → dispatch" in shown_text(app)
        assert "Build 4812 is green." in shown_text(app)


async def test_the_tree_tells_who_asked_whom_and_what_waits_for_a_person(story: Fleet) -> None:
    app = console(directly(story.working), start="threads")
    async with app.run_test(size=(80, 24)) as pilot:
        await opened(pilot, thread_called(story, "Report of October"))
        await pilot.press("t")
        await until_on(app, TraceScreen)
        await until(lambda: "cartographer" in shown_text(app), "the tree")

        shown = lines(app)
        tree = [line for line in shown if line.startswith(("├", "└", "▸", "cartographer"))]
        assert any("cartographer" in line and "● running" in line for line in tree)
        assert any("├ atlas" in line and "✓ succeeded" in line for line in tree)
        assert any("├ beacon" in line and "✗ failed" in line and "503" in line for line in tree)
        assert any("└ beacon" in line and "◐ pending" in line and "3m" in line for line in tree)

        waiting = "select id::text from approvals where state = 'pending' and to_agent_id = %s"
        approval = ApprovalId(str(story.one(waiting, story.agent_id("beacon"))))
        app.screen.query_one(VirtualTable).move_to(str(approval))
        await pilot.press("P")
        await until(
            lambda: not isinstance(app.screen, TraceScreen) and "second source" in shown_text(app), "what waits"
        )
        await pilot.press("escape")
        await until_on(app, TraceScreen)

        failed = RunId(str(story.one("select id::text from runs where status = 'failed'")))
        app.screen.query_one(VirtualTable).move_to(str(failed))
        await pilot.press("enter")
        await until_on(app, RunScreen)
        await until(lambda: "agent_failed" in shown_text(app), "the run")
        assert "the site answered 503 three times" in shown_text(app)

        await pilot.press("m")
        conversation = await until_open(pilot, app)
        await until(lambda: conversation.talk.cursor_key == "#9", "what came out of the run")


async def test_a_message_leads_to_what_it_asked_for_and_to_nothing_else(
    story: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    thread_id = thread_called(story, "Nightly build is red")
    asking, idle = (
        say(story, thread_id, "ole@example.com", "Look."),
        say(story, thread_id, "ole@example.com", "Ah."),
    )
    asked = add_run(story, thread_id)
    story.execute("update runs set input_message_id = %s where id = %s", asking, asked)
    for _ in range(5):
        add_run(story, thread_id, "beacon")
    monkeypatch.setattr(messages, "PAGE_LIMIT_MAX", 2)
    app = console(directly(story.working), start="threads")
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, thread_id)
        assert screen.talk.message is not None
        assert screen.talk.message.id == idle
        await pilot.press("t")
        await until(lambda: "This message asked nobody to act" in shown_text(app), "no tree of another")

        await pilot.press("up", "t")
        await until_on(app, TraceScreen)
        assert isinstance(app.screen, TraceScreen)
        assert app.screen._of.id == asked


async def test_enter_leads_to_the_row_it_was_pressed_on(story: Fleet) -> None:
    app = console(directly(story.working), start="threads")
    async with app.run_test(size=(80, 24)) as pilot:
        await opened(pilot, thread_called(story, "Report of October"))
        await pilot.press("t")
        await until_on(app, TraceScreen)
        table = app.screen.query_one(VirtualTable)
        await until(lambda: len(table.source) > 3, "the tree")
        waiting = str(
            ApprovalId(
                str(
                    story.one(
                        "select id::text from approvals where state = 'pending' and to_agent_id = %s",
                        story.agent_id("beacon"),
                    )
                )
            )
        )
        assert table.cursor_id != waiting

        table.post_message(RowChosen(table, waiting))

        await until(lambda: isinstance(app.screen, ApprovalScreen), "the request, not the run under the cursor")


async def fill_in(pilot: Pilot[None], key: str, operation: str | None, **typed: str) -> None:
    """Choose an operation, where there is a choice, and fill in its form."""
    app = app_of(pilot)
    if operation is None:
        await pilot.press(key)
        await until_on(app, OperationForm)
    else:
        await choose(app, pilot, key, operation)
    for name, value in typed.items():
        app.screen.query_one(f"#field-{name}", Input).value = value
    app.screen.query_one(DoIt).focus()


@pytest.mark.rule("R002-31")
async def test_who_takes_part_is_granted_changed_and_revoked(story: Fleet) -> None:
    thread_id = thread_called(story, "Nightly build is red")
    rights = (
        "select can_read, can_write, can_share from thread_participants p join agents a on a.id = p.agent_id"
        " where p.thread_id = %s and a.name = 'iris'"
    )
    app = console(directly(story.working), start="threads")
    async with app.run_test(size=(80, 24)) as pilot:
        await opened(pilot, thread_id)
        await pilot.press("p")
        await until(lambda: app.detail is None and app.pane.has_answer, "who takes part")
        assert "● agent   dispatch" in shown_text(app)

        await fill_in(pilot, "n", None, agent_id=str(story.agent_id("iris")), can_write="yes")
        await pilot.press("enter")
        await until(lambda: "iris" in shown_text(app), "whom was let in")
        assert story.execute(rights, thread_id) == [(True, True, False)]

        shown = list_of(app)
        shown.table.move_to(next(row_id for row_id in row_ids(shown) if cells(shown, row_id)[1] == "iris"))
        await fill_in(pilot, "a", "threads.change_rights", can_write="no")
        await pilot.press("enter")
        await until(lambda: story.execute(rights, thread_id) == [(True, False, False)], "fewer rights")

        await until(lambda: len(app.screen_stack) == 1, "the form is gone")
        await fill_in(pilot, "a", "threads.revoke")
        await pilot.press("enter")
        assert isinstance(app.screen, OperationForm), "Enter revokes nothing"
        await pilot.press("y")
        await until(lambda: story.execute(rights, thread_id) == [], "the end of its part")


async def test_a_job_leads_to_its_run_its_thread_and_a_run_can_be_cancelled(story: Fleet) -> None:
    """Back leads over the same steps."""
    job = story.one(
        "select id::text from jobs where run_id is not null and status = 'running' order by id limit 1"
    )
    app = console(directly(story.working), start="jobs")
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        app.pane.post_message(ThingWanted("jobs", str(JobId(str(job)))))
        await until(lambda: app.detail is not None and app.detail.has_answer, "the job")
        await pilot.press("U")
        await until_on(app, RunScreen)
        await fill_in(pilot, "a", None, reason="not needed")
        await pilot.press("y")
        await until(lambda: "cancelling" in shown_text(app), "the run is asked to stop")

        await pilot.press("T")
        await until_open(pilot, app)
        assert app.crumbs[0] == "Jobs"
        assert app.crumbs[-1] == "Report of October"
        await pilot.press("escape")
        await until_on(app, RunScreen)


async def test_words_that_mean_harm_are_shown_and_do_nothing(fleet: Fleet) -> None:
    thread_id = add_thread(fleet, title=HOSTILE)
    let_in(fleet, thread_id, "atlas")
    say(fleet, thread_id, "atlas", HOSTILE)
    app = console(directly(fleet.working), start="threads")
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        assert "\\x1b]52;c;aGk=\\x07[@click" in shown_text(app)

        await opened(pilot, thread_id)

        assert "│ \\x1b]52;c;aGk=\\x07[@click=app.quit]x[/] \\u202egnp.exe" in lines(app)
        assert "│    #9 ■ system  approved by Ana" in lines(app), "no words of others stand where ours do"
        assert "\x1b" not in shown_text(app)
        await pilot.press("enter")
        await until(lambda: "Message #" in shown_text(app), "the message whole")
        assert "│ \\x1b]52" in shown_text(app)


async def test_a_thread_one_may_no_longer_read_stays_as_it_was_last_known(story: Fleet) -> None:
    app = console(directly(story.working, user="ole@example.com"), start="threads")
    async with app.run_test(size=(80, 24)) as pilot:
        thread_id = thread_called(story, "Nightly build is red")
        screen = await opened(pilot, thread_id)

        story.execute("delete from thread_participants where thread_id = %s", thread_id)
        await until(lambda: "no such thread that you may read" in shown_text(app), "a word about it")

        assert "Build 4812 is green." in shown_text(app)
        assert screen.talk.stale
        await until(lambda: "Write" not in lines(app)[-1], "nothing more to write")
