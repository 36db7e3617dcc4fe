"""A paused queue is told on every pane and screen, for as long as it is paused."""

from datetime import timedelta

import pytest

from agent_console.domain.agents import PoolStatus
from agent_console.domain.kinds import PauseMode
from agent_console.domain.pausing import Pause, QueuePausing
from agent_console.domain.records import Nothing
from agent_console.repository.operations.pausing import QUEUE_PAUSE, QUEUE_RESUME
from agent_console.tui.dialogs.action_menu import ActionMenu
from agent_console.tui.link import LinkState, LinkStatus, Opening
from agent_console.tui.widgets.header import HeaderFacts, pause_line
from tests.attacks.hostile_strings import HOSTILE, dangers
from tests.support.fleet import AT
from tests.tui_console.conftest import SomebodyElse
from tests.tui_console.stage import console, header_text, loaded, press, shown_text, until, until_on

DISK_SWAP = QueuePausing(mode=PauseMode.DRAIN, reason="disk swap")


def paused_facts(reason: str) -> HeaderFacts:
    pause = Pause(mode=PauseMode.QUIESCE, reason=reason, since=AT - timedelta(minutes=12), by="Ana Costa")
    pool = PoolStatus(
        online_count=1, idle_count=1, running_jobs_count=0, offline_count=0, error_count=0, at=AT, pause=pause
    )
    link = LinkStatus(LinkState.UP)
    return HeaderFacts("local", production=False, read_only=False, pool=pool, link=link, now=AT)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_it_says_how_since_when_and_why(width: int) -> None:
    line = pause_line(paused_facts("disk swap"), width)

    assert line is not None
    assert line.plain.strip() == "‖ Queue paused (quiesce) for 12m by Ana Costa: disk swap"


@pytest.mark.parametrize("reason", HOSTILE.values(), ids=HOSTILE)
def test_a_reason_fills_its_line_and_never_more(reason: str) -> None:
    line = pause_line(paused_facts(reason), 80)

    assert line is not None
    assert line.cell_length == 80
    assert dangers(line.plain) == []


@pytest.mark.usefixtures("nobody_looks_again")
@pytest.mark.parametrize("keys", [(), ("3",), ("3", "enter")], ids=["agents", "jobs", "one-job"])
async def test_it_comes_and_goes_wherever_one_is(
    opening: Opening, somebody_else: SomebodyElse, keys: tuple[str, ...]
) -> None:
    app = console(opening)
    async with app.run_test(size=(80, 24)) as pilot, somebody_else() as other:
        await loaded(pilot)
        await press(pilot, *keys)
        assert "paused" not in header_text(app)

        await other.call(QUEUE_PAUSE, DISK_SWAP)
        await until(lambda: "‖ Queue paused (drain)" in shown_text(app), "the pause")
        assert "disk swap" in shown_text(app).splitlines()[1]

        await other.call(QUEUE_RESUME, Nothing())
        await until(lambda: "paused" not in shown_text(app), "the end of the pause")


@pytest.mark.usefixtures("nobody_looks_again")
async def test_it_is_told_behind_an_open_dialog_too(opening: Opening, somebody_else: SomebodyElse) -> None:
    app = console(opening)
    async with app.run_test(size=(80, 24)) as pilot, somebody_else() as other:
        await loaded(pilot)
        await pilot.press("a")
        await until_on(app, ActionMenu)

        await other.call(QUEUE_PAUSE, DISK_SWAP)

        await until(lambda: "‖ Queue paused (drain)" in shown_text(app), "the pause")
        assert isinstance(app.screen, ActionMenu)
