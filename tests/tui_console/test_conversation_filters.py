"""Filtering threads, runs and approvals by typing: what is found, what is offered, what is refused."""

import pytest

from agent_console.domain.ids import ApprovalId, Id, RunId, ThreadId
from agent_console.domain.records import Page, Record
from agent_console.repository.port import Topic
from agent_console.tui.app import ConsoleApp
from agent_console.tui.lists.cursor_list import CursorList
from agent_console.tui.widgets.filter_line import FilterLine
from tests.support.fleet import Fleet
from tests.support.requests_made import add_approval
from tests.tui_console.conversation_stage import thread_called
from tests.tui_console.stage import announce, console, directly, list_of, loaded, press, row_ids, shown_text, until
from tests.tui_console.test_filtering import typed

STOCK = "Stock count, aisle by aisle"


def ids(story: Fleet, kind: type[Id], rows: str) -> list[str]:
    return [str(kind(str(row_id))) for (row_id,) in story.execute(f"select id::text from {rows}")]


def offered(app: ConsoleApp) -> tuple[str, ...]:
    return app.screen.query_one(FilterLine).offered


@pytest.mark.usefixtures("nobody_looks_again")
async def test_threads_by_agent_and_by_what_they_wait_for(story: Fleet) -> None:
    waiting = ids(
        story, ThreadId, "threads t where id in (select thread_id from approvals where state = 'pending')"
    )
    app = console(directly(story.working), start="threads")
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await press(pilot, "slash")
        await typed(pilot, "waiting:ap")
        assert offered(app) == ("approval",)
        await press(pilot, "tab", "enter")
        assert sorted(row_ids(list_of(app))) == sorted(waiting)
        assert f"{len(waiting)} of all you may read match waiting:approval" in shown_text(app)

        # It is as fresh as the list itself.
        story.execute("update approvals set state = 'expired', decided_at = now() where state = 'pending'")
        announce(story, Topic.APPROVALS)
        await until(lambda: not row_ids(list_of(app)), "nothing waits any more")

        shown = shown_text(app)
        assert "Nothing matches." in shown
        assert "Filtered by waiting:approval" in shown
        assert "/ changes the filter, Esc clears it, f shows another group." in shown
        await press(pilot, "slash", "ctrl+u")
        await typed(pilot, "stock agent:at")
        await until(lambda: offered(app) == ("atlas",), "the agents are offered")
        await press(pilot, "tab", "enter")
        assert row_ids(list_of(app)) == [str(thread_called(story, STOCK))]
        await press(pilot, "escape")
        assert len(row_ids(list_of(app))) > 1


async def test_runs_by_state_and_by_the_words_of_their_error(story: Fleet) -> None:
    failed = ids(story, RunId, "runs where status = 'failed'")
    app = console(directly(story.working), start="threads")
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await press(pilot, "colon", *"runs", "enter")
        await press(pilot, "slash")
        await typed(pilot, "stat:failed")
        await press(pilot, "enter")
        assert "there is no stat: here; did you mean status:?" in shown_text(app)

        await press(pilot, "end", "ctrl+u")
        await typed(pilot, "status:failed agent_fail")
        await press(pilot, "enter")

        assert row_ids(list_of(app)) == failed
        assert f"{len(failed)} of all runs match status:failed agent_fail" in shown_text(app)


async def test_approvals_by_pair_and_by_how_they_were_decided(story: Fleet) -> None:
    thread_id = thread_called(story, STOCK)
    rejected = ids(story, ApprovalId, "approvals where state = 'rejected'")
    app = console(directly(story.working), start="approvals")
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await press(pilot, "slash")
        await typed(pilot, "from:dispatch to:gantry")
        await press(pilot, "enter")
        assert len(row_ids(list_of(app))) == 1
        assert "1 of those waiting for a person match from:dispatch to:gantry" in shown_text(app)

        later = add_approval(story, thread_id, pair=("dispatch", "gantry"))
        announce(story, Topic.APPROVALS)
        await until(lambda: str(later) in row_ids(list_of(app)), "one more of the pair")

        # Whoever asks for what was decided is shown the list in which that is.
        await press(pilot, "slash", "ctrl+u")
        await typed(pilot, "status:rejected")
        await press(pilot, "enter")
        assert row_ids(list_of(app)) == rejected
        assert "1 of those decided match status:rejected" in shown_text(app)

        await press(pilot, "f")
        assert "status:rejected finds nothing in this list, where all are pending." in shown_text(app)
        await press(pilot, "escape")
        assert "3 waiting for a person" in shown_text(app)


class Waiting(Record):
    id: ApprovalId


ROWS = tuple(Waiting(id=ApprovalId.new()) for _ in range(4))


def page(first: int, last: int, place: str | None) -> Page[Waiting]:
    return Page[Waiting](items=ROWS[first:last], next=place)


def test_what_was_found_stays_while_the_pages_before_it_find_nothing_again() -> None:
    found = CursorList[Waiting]().merged(None, page(0, 0, "a")).merged("a", page(0, 0, "b"))
    assert found.last_before(0) == "b", "it goes on from there until it is at the end"
    found = found.merged("b", page(1, 3, None))

    # The list is looked through from its top again, where nothing has come, then something.
    same = found.merged(found.last_before(0), page(0, 0, "c"))
    more = found.merged(found.last_before(0), page(0, 1, "c")).merged("c", page(1, 3, None))

    assert (found.records, found.complete, found.last_before(0)) == (ROWS[1:3], True, None)
    assert (same.records, same.complete, same.joint_below(None, 9)) == (ROWS[1:3], True, "c")
    assert same.merged("c", page(2, 3, None)).records == ROWS[2:3]
    assert (more.records, more.complete) == (ROWS[:3], True)
