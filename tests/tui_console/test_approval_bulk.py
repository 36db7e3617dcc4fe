"""Several requests at once: only of one pair, each read, each with a decision of its own."""

import pytest
from psycopg.types.json import Jsonb
from textual.content import Content

from agent_console.domain.delegation import digest_of
from agent_console.domain.ids import ApprovalId
from agent_console.tui.facts import FactSheet
from agent_console.tui.panes.approvals.bulk import ApprovalBulkScreen
from tests.support.fleet import Fleet
from tests.tui_console.approval_stage import STATIONS, approval_like, at, desk, set_words
from tests.tui_console.audit_stage import Held, held_after
from tests.tui_console.stage import list_of, press, row_ids, until


def ask_again(story: Fleet, words: str, count: int) -> None:
    """As many more requests of the same pair, each a little later to expire."""
    columns = (
        "team_id, thread_id, from_agent_id, to_agent_id, route_id, route_version, parent_run_id, trace_id,"
        " delegation_path, request_digest"
    )
    like = approval_like(story, words)
    [(envelope,)] = story.execute("select envelope from approvals where id = %s", like)
    assert isinstance(envelope, dict)
    for number in range(count):
        approval_id = ApprovalId.new()
        asked = envelope | {"approval_id": str(approval_id), "input": f"Read the weather of place {number}."}
        story.execute(
            f"insert into approvals (id, envelope, digest, expires_at, {columns})"
            f" select %s, %s, %s, expires_at + %s * interval '1 minute', {columns} from approvals where id = %s",
            *(approval_id, Jsonb(asked), digest_of(asked), number + 1, like),
        )


def decisions(story: Fleet) -> list[tuple[object, ...]]:
    today = "select state, count(*) from approvals where decided_at < now() + interval '1 hour'"
    return story.execute(f"{today} group by state order by state")


async def test_requests_of_two_pairs_are_not_decided_together(story: Fleet) -> None:
    async with desk(at(story)) as ana:
        await press(ana.pilot, "space", "space")

        await ana.pilot.press("a")

        await ana.sees("Only requests of one agent", "2 pairs")
        assert len(ana.app.screen_stack) == 1


async def test_one_that_is_marked_is_no_crowd(story: Fleet) -> None:
    async with desk(at(story)) as ana:
        await press(ana.pilot, "space", "a")
        await until(lambda: isinstance(ana.app.screen, ApprovalBulkScreen), "what is marked")
        ana.wait_a_moment()
        await ana.pilot.press("end")

        await ana.sees("a approves it (it asks again)   r rejects it")


async def test_marked_requests_are_read_and_approved_one_by_one(story: Fleet) -> None:
    ask_again(story, STATIONS, 3)
    async with desk(at(story)) as ana:
        await press(ana.pilot, "space", "space", "space", "a")
        await until(lambda: isinstance(ana.app.screen, ApprovalBulkScreen), "what is marked")
        await ana.sees("3 × cartographer → beacon", "1 of 3", "digest")
        ana.wait_a_moment()
        await ana.pilot.press("end")
        await ana.sees("a approves these 3", "place 1")
        set_words(story, "place 1", "Read the mail of everybody.")

        await ana.arms()
        await ana.pilot.press("y")

        await ana.sees("2 of 3 decided, 1 not: PgUp and PgDn show why")
        await ana.pilot.press("home")
        await ana.sees("✓ approved")
        assert decisions(story) == [("approved", 2)]
        assert story.one("select state from approvals where envelope ->> 'input' like '%%mail%%'") == "pending"
        await ana.pilot.press("escape")
        await until(lambda: len(row_ids(list_of(ana.app))) == 3, "what still waits")
        assert list_of(ana.app).table.marks == frozenset()


async def test_who_goes_elsewhere_while_they_are_decided_takes_nothing_back_and_is_told(story: Fleet) -> None:
    ask_again(story, STATIONS, 2)
    sides: list[Held] = []
    async with desk(held_after(at(story), "approvals.approve", 1, sides)) as ana:
        await press(ana.pilot, "space", "space", "a")
        await until(lambda: isinstance(ana.app.screen, ApprovalBulkScreen), "what is marked")
        await ana.sees("1 of 2")
        ana.wait_a_moment()
        await ana.pilot.press("end")
        await ana.sees("a approves these 2")
        await ana.arms()
        await ana.pilot.press("y")
        await ana.sees("1 of 2 done")

        await ana.pilot.press("2")
        await until(lambda: not ana.app.stacked, "elsewhere")
        sides[0].let_go.set()

        await until(lambda: decisions(story) == [("approved", 2)], "both are decided")
        await ana.sees("cartographer → beacon: 2 of 2")


async def test_a_second_that_passes_lays_nothing_out_anew(story: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    laid_out: list[int] = []
    lines = FactSheet.laid_out

    def counted(sheet: FactSheet, width: int) -> Content:
        laid_out.append(len(sheet.parts))
        return lines(sheet, width)

    ask_again(story, STATIONS, 2)
    async with desk(at(story)) as ana:
        await press(ana.pilot, "space", "space", "a")
        await ana.sees("1 of 2", "hop", "thread", "begun by", "expires")
        monkeypatch.setattr(FactSheet, "laid_out", counted)

        for _ in range(3):
            ana.wait_a_moment()
            ana.app.view.tick()

        assert laid_out == []


async def test_one_reason_rejects_them_all_each_with_its_own_row(story: Fleet) -> None:
    ask_again(story, STATIONS, 2)
    async with desk(at(story)) as ana:
        await press(ana.pilot, "space", "space", "a")
        await until(lambda: isinstance(ana.app.screen, ApprovalBulkScreen), "what is marked")
        await ana.sees("1 of 2")
        ana.wait_a_moment()

        await ana.pilot.press("r")
        await ana.sees("Reject 2 × cartographer → beacon")
        await ana.pilot.press(*"not now", "enter", "y")

        await ana.sees("2 of 2 decided   Esc leads back", "✓ rejected")
        assert decisions(story) == [("rejected", 2)]
        assert story.one("select count(*) from audit_log where action = 'approval.reject'") == 2
