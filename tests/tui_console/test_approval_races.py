"""A request that changes, ends or goes out of reach while somebody looks at it: nothing is decided unawares."""

from contextlib import AsyncExitStack
from datetime import timedelta
from urllib.parse import urlsplit

import psycopg
import pytest

from agent_console.tui.dialogs.approve_question import ApproveQuestion
from agent_console.tui.dialogs.reject_form import RejectForm
from agent_console.tui.link import LinkState
from tests.support.fleet import AT, Fleet
from tests.support.serving import serving
from tests.tui_console.approval_stage import DEPLOY, STATIONS, at, desk, set_words, state_of, tell
from tests.tui_console.audit_stage import Held, held_after
from tests.tui_console.stage import through, until, until_on

ANA, OLE, VERA = "ana@example.com", "ole@example.com", "vera@example.com"


def begun_by(story: Fleet, email: str) -> None:
    """As if this person had begun everything: the others may decide it."""
    story.execute(
        "update runs set requested_by_user_id = %s where requested_by_type = 'human'", story.user_id(email)
    )


@pytest.mark.parametrize("away", ["escape", "q", "2"])
async def test_who_leaves_while_it_is_decided_takes_nothing_back_and_is_told(story: Fleet, away: str) -> None:
    sides: list[Held] = []
    async with desk(held_after(at(story), "approvals.approve", 0, sides)) as ana:
        await ana.opens(DEPLOY)
        await ana.arms()
        await ana.pilot.press("y")
        await ana.sees("Asking …")

        await ana.pilot.press(away)
        await until(lambda: not ana.app.stacked, "elsewhere")
        sides[0].let_go.set()

        await ana.sees("you approved it")
        assert state_of(story, DEPLOY) == "approved"


async def test_who_left_is_told_why_nothing_was_decided(story: Fleet, nobody_looks_again: None) -> None:
    sides: list[Held] = []
    async with desk(held_after(at(story), "approvals.approve", 0, sides)) as ana:
        await ana.opens(DEPLOY)
        await ana.arms()
        await ana.pilot.press("y")
        await ana.sees("Asking …")
        await ana.pilot.press("escape")
        await until(lambda: not ana.app.stacked, "elsewhere")
        story.execute("update approvals set digest = repeat('0', 64) where state = 'pending'")
        sides[0].let_go.set()

        await ana.sees("What you read")
        assert state_of(story, DEPLOY) == "pending"


async def test_an_agent_without_a_name_is_called_by_its_id_on_the_way(story: Fleet) -> None:
    async with desk(at(story)) as ana:
        await ana.opens(DEPLOY)
        nameless = ana.screen._listed.model_copy(update={"from_agent": None})
        ana.screen._listed = nameless

        assert ana.screen.crumb == f"{nameless.from_agent_id} → {nameless.to_agent}"


@pytest.mark.rule("R002-76")
async def test_of_two_consoles_the_second_is_told_who_was_first(story: Fleet) -> None:
    begun_by(story, VERA)
    async with desk(at(story)) as ana, desk(at(story, OLE)) as ole:
        await ana.opens(DEPLOY)
        await ole.opens(DEPLOY)
        both = "select count(distinct user_id) = 2 from approval_looks"
        await until(lambda: story.one(both) is True, "both have said that they look")
        ana.clock.now += timedelta(seconds=6)
        await ana.sees("also looking: Ole Berg since")
        await ana.arms()
        await ole.pilot.press("r")
        await until_on(ole.app, RejectForm)

        await ana.pilot.press("y")
        await ana.sees("✓ You approved it")

        await until(lambda: ole.app.screen is ole.screen, "the form about what is over is taken away")
        await ole.sees("✓ Ana Costa approved it", "run made")
        await ole.pilot.press("a", "r", "y")
        assert (ole.app.screen, "Approve once" in ole.text) == (ole.screen, False)
        assert story.one("select count(*) from audit_log where action like 'approval.%%'") == 1


async def test_the_loser_of_a_race_is_told_by_whom_and_when(story: Fleet, nobody_looks_again: None) -> None:
    async with desk(at(story)) as ana:
        await ana.opens(DEPLOY)
        await ana.arms()
        story.execute(
            "update approvals set state = 'rejected', decided_at = now(), decision_reason = 'not at night',"
            " decided_by_user_id = %s where state = 'pending'",
            story.user_id(OLE),
        )

        await ana.pilot.press("y")

        await ana.sees("Ole Berg rejected it at 20", "not at night")
        await until(lambda: "Approve once" not in ana.text, "nothing is left to decide")
        assert state_of(story, DEPLOY) == "rejected"


async def test_words_that_were_swapped_are_read_again(story: Fleet, nobody_looks_again: None) -> None:
    async with desk(at(story)) as ana:
        await ana.opens(DEPLOY)
        await ana.arms()
        set_words(story, DEPLOY, "Deploy build 4812 and delete the backups.")

        await ana.pilot.press("y")
        await ana.sees("What you read is not what this approval is about.")
        await ana.sees("and delete the backups")
        assert state_of(story, "backups") == "pending"
        ana.wait_a_moment()
        await ana.arms()
        set_words(story, "backups", "Deploy build 4813.")
        tell(story)

        await until(lambda: not isinstance(ana.app.screen, ApproveQuestion), "the question is taken away")
        await ana.sees("It has changed under your eyes.", "Deploy build 4813.")
        await ana.pilot.press("a")
        await ana.sees("One moment")
        assert (ana.app.screen, state_of(story, "4813")) == (ana.screen, "pending")


async def test_a_request_that_expires_under_the_eyes(story: Fleet) -> None:
    async with desk(at(story)) as ana:
        await ana.opens(STATIONS)
        ana.clock.now = AT + timedelta(seconds=420 - 30)
        await ana.sees("expires in 30s")

        ana.clock.now = AT + timedelta(seconds=421)
        await ana.sees("its time is up", "is being looked up")
        await ana.pilot.press("a", "r")
        assert ana.app.screen is ana.screen
        story.execute("update approvals set expires_at = now() where state = 'pending'")

        await ana.sees("◌ expired")
        assert "Approve once" not in ana.text


WAITS_FOR_A_LOCK = "datname = current_database() and wait_event_type = 'Lock'"


async def test_a_decision_whose_answer_never_came_is_looked_up(story: Fleet) -> None:
    async with desk(at(story)) as ana:
        await ana.opens(DEPLOY)
        await ana.arms()
        with psycopg.connect(story.administration) as somebody:
            somebody.execute("select from approvals for update")
            await ana.pilot.press("y")
            await ana.sees("Asking …")
            waiting = f"select count(*) from pg_stat_activity where {WAITS_FOR_A_LOCK}"
            await until(lambda: story.one(waiting) == 1, "the decision waits")
            story.execute(f"select pg_terminate_backend(pid) from pg_stat_activity where {WAITS_FOR_A_LOCK}")
            await ana.sees("Your decision did not arrive: as of now it still waits.")
            somebody.rollback()

        assert state_of(story, DEPLOY) == "pending"
        await ana.arms()
        await ana.pilot.press("y")
        await ana.sees("✓ You approved it")


async def test_a_connection_lost_in_the_middle_of_a_decision(story: Fleet) -> None:
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(AsyncExitStack())
        url = await first.enter_async_context(serving(story.working))
        ana = await stack.enter_async_context(desk(through(url, story.token(ANA))))
        await ana.opens(DEPLOY)
        await ana.arms()
        await first.aclose()

        if isinstance(ana.app.screen, ApproveQuestion):
            await ana.pilot.press("y")
        await until(lambda: ana.app.link.status.state is LinkState.LOST, "lost")
        await ana.sees("There is no connection: nothing can be decided until it is back.")
        await ana.pilot.press("a", "r")
        assert ana.app.screen is ana.screen

        await stack.enter_async_context(serving(story.working, port=urlsplit(url).port or 0))
        await until(lambda: ana.app.link.status.state is LinkState.UP, "up again")
        await ana.sees("a approves once")
        assert state_of(story, DEPLOY) == "pending"
        await ana.arms()
        await ana.pilot.press("y")
        await ana.sees("✓ You approved it")
