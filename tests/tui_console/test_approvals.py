"""The list of what waits for a person, and one request of it: what can be decided, and what can't, and why."""

import pytest
from textual.events import Paste
from textual.widgets import Input

from agent_console.domain.permissions import Role
from agent_console.tui.dialogs.approve_question import ApproveQuestion
from agent_console.tui.dialogs.operation_form import DoIt
from agent_console.tui.dialogs.reject_form import RejectForm
from agent_console.tui.panes.approvals.screen import ApprovalScreen
from agent_console.tui.panes.routes.editor import RouteEditor
from tests.support.fleet import Fleet
from tests.tui_console.approval_stage import DEPLOY, STATIONS, approval_like, at, desk, set_words, state_of
from tests.tui_console.stage import list_of, press, row_ids, through_server, until, until_on

OLE, VERA = "ole@example.com", "vera@example.com"
LONG = "\n".join(f"{line}. Delete the builds of week {line}." for line in range(1, 61))


async def test_what_expires_next_comes_first_and_what_was_decided_stays_readable(story: Fleet) -> None:
    async with desk(through_server(story)) as ana:
        waiting = row_ids(list_of(ana.app))
        await press(ana.pilot, "f")
        await ana.sees("3 decided", "✗ rejected", "◌ expired", "nobody")

        await press(ana.pilot, "down", "down", "enter")

        assert waiting == [str(approval_like(story, STATIONS)), str(approval_like(story, DEPLOY))]
        await ana.sees("✗ rejected by Ana Costa", "Two shops asked us not to crawl them.", "Read the price lists")
        assert "Approve" not in ana.text
        await press(ana.pilot, "t")
        await ana.sees("The report of October, please.")


async def test_an_empty_history_does_not_say_that_nobody_waits(story: Fleet) -> None:
    story.execute("delete from approvals where state <> 'pending'")
    async with desk(at(story)) as ana:
        await press(ana.pilot, "f")

        await ana.sees("0 decided", "Nothing has been decided so far.", "◆ 2 approvals")
        assert "Nothing waits" not in ana.text


async def test_approving_takes_two_keys_and_a_look(story: Fleet) -> None:
    async with desk(through_server(story)) as ana:
        await ana.opens(DEPLOY)
        await ana.sees("1 of 2   dispatch → gantry", "begun by       Ole Berg", "expires in 48m 28s")

        await ana.pilot.press("enter", "y", "space")
        assert state_of(story, DEPLOY) == "pending"
        await ana.arms()
        await ana.pilot.press("y")

        await ana.sees("✓ You approved it", "run made")
        assert state_of(story, DEPLOY) == "approved"
        assert story.one("select count(*) from runs where parent_run_id is not null and status = 'queued'") == 1
        await ana.pilot.press("escape")
        await until(lambda: len(row_ids(list_of(ana.app))) == 1, "the other one is left")
        await ana.sees("◆ 1 approval")


async def test_no_other_key_approves(story: Fleet) -> None:
    async with desk(at(story)) as ana:
        await ana.opens(DEPLOY)
        for key in ("enter", "escape", "a", "n", "space", "3", "Y"):
            await ana.arms()

            await ana.pilot.press(key)
            await until(lambda: not isinstance(ana.app.screen, ApproveQuestion), f"the question after {key}")

            await ana.sees("You did not approve it.")
            assert (state_of(story, DEPLOY), ana.app.screen) == ("pending", ana.screen), key


async def test_keys_that_were_on_their_way_decide_nothing(story: Fleet) -> None:
    async with desk(at(story)) as ana:
        await press(ana.pilot, "enter")
        await ana.sees("One moment")

        await ana.pilot.press("a", "y", "r", "y")
        assert ana.app.screen is ana.screen
        ana.wait_a_moment()
        await ana.pilot.press("a")
        await until_on(ana.app, ApproveQuestion)
        await ana.pilot.press("y", "y")
        await ana.sees("Too quick to have been read.")

        assert isinstance(ana.app.screen, ApproveQuestion)
        assert state_of(story, STATIONS) == "pending"


async def test_pasted_text_is_no_key(story: Fleet) -> None:
    async with desk(at(story)) as ana:
        await ana.opens(DEPLOY)

        for _ in range(20):
            ana.app.post_message(Paste("ay\nray\n"))
        await ana.sees("Pasted text decides nothing.")
        await ana.arms()
        ana.app.post_message(Paste("y"))

        await ana.sees("You did not approve it.")
        assert state_of(story, DEPLOY) == "pending"


async def test_a_rejection_needs_a_reason(story: Fleet) -> None:
    async with desk(through_server(story)) as ana:
        await ana.opens(STATIONS)
        await ana.pilot.press("r")
        await until_on(ana.app, RejectForm)
        await ana.sees("Reject cartographer → beacon")

        ana.app.screen.query_one(DoIt).focus()
        await ana.pilot.press("y")
        await until(lambda: isinstance(ana.app.focused, Input), "the field of the reason")
        assert state_of(story, STATIONS) == "pending"
        await ana.pilot.press(*"yes", "enter", "enter", "y")

        await ana.sees("✗ You rejected it", "yes")
        assert story.execute("select state, decision_reason from approvals where decision_reason = 'yes'") == [
            ("rejected", "yes")
        ]


async def test_what_is_long_is_read_to_its_end_before_it_is_approved(story: Fleet) -> None:
    set_words(story, DEPLOY, LONG)
    async with desk(at(story)) as ana:
        await press(ana.pilot, "down", "enter")
        ana.wait_a_moment()
        ana.screen.tick()
        await ana.sees("Scroll to the end to approve", "1. Delete the builds of week 1.")

        await ana.pilot.press("a")
        assert ana.app.screen is ana.screen
        await ana.pilot.press("pagedown", "end")
        await ana.sees("60. Delete the builds of week 60.", "a approves once", "Approve once")
        await ana.pilot.press("home")
        await ana.sees("1. Delete the builds of week 1.")

        await ana.arms()


async def test_nobody_decides_what_they_began(story: Fleet) -> None:
    async with desk(at(story, OLE)) as ole:
        await ole.opens(DEPLOY)

        await ole.sees("You began this yourself; somebody else has to decide it.")
        await ole.pilot.press("a", "r")

        assert ole.app.screen is ole.screen
        assert "Approve" not in ole.text


@pytest.mark.parametrize(("who", "read_only"), [(VERA, False), ("ana@example.com", True)])
async def test_who_only_reads_sees_no_key_that_decides(story: Fleet, who: str, read_only: bool) -> None:
    async with desk(at(story, who), read_only=read_only) as reader:
        assert "Decide" not in reader.text
        await reader.opens(STATIONS)

        await reader.pilot.press("a", "r", "p")

        why = "This console is read-only" if read_only else f"The role {Role.VIEWER.value} reads this"
        await reader.sees(why)
        assert (reader.app.screen, "Approve" in reader.text) == (reader.screen, False)
        assert story.one("select count(*) from approval_looks") == 0


async def test_from_a_request_to_what_it_belongs_to(story: Fleet) -> None:
    async with desk(at(story)) as ana:
        await ana.opens(DEPLOY)

        for key, word in {"A": "dispatch", "O": "gantry"}.items():
            await press(ana.pilot, key)
            await until(lambda: not isinstance(ana.app.screen, ApprovalScreen), f"what {key} leads to")
            await ana.sees(word)
            await press(ana.pilot, "escape")
            await until(lambda: isinstance(ana.app.screen, ApprovalScreen), "the request again")
        await ana.pilot.press("p")
        await until_on(ana.app, RouteEditor)

        await ana.sees("dispatch", "gantry")
        assert story.one("select count(*) from a2a_routes where version > 1") == 0
