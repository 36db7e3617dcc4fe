"""The overview: calm, in trouble, at every size and in every palette."""

import math
from datetime import timedelta

import pytest
from textual.pilot import Pilot

from agent_console.domain.queue_stats import QueueTotals
from agent_console.tui.history import History, Sample
from agent_console.tui.panes.overview import pane as overview
from agent_console.tui.panes.overview.pane import OverviewPane
from tests.snapshots.conftest import NARROW, USUAL, WIDE, Sizes, SnapCompare
from tests.support.fleet import AT, Fleet
from tests.tui_console.stage import ADMIN, console, directly, loaded
from tests.tui_console.test_overview import PAUSE, do_the_duties, mend
from tests.tui_console.test_overview_course import stats

LATE_DUTY = "update duty_rounds set done_at = now() - interval '150 minutes' where duty = 'seals'"
UNSEALED = """
    insert into audit_log (team_id, id, actor_type, actor_label, action, resource_type, resource_id, event_hash,
                           created_at)
    values (%s, new_id(), 'system', 'agent-console', 'job.create', 'job', 'job_1', sha256(''),
            now() - interval '150 minutes')
"""


@pytest.fixture(autouse=True)
def only_this_course(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overview, "SAMPLE_SECONDS", 3600.0)


def course() -> History:
    """Ten minutes, two of which nobody saw."""
    history = History()
    done = failed = lost = claims = 0
    waited = 0.0
    for step in range(121):
        at = AT - timedelta(seconds=5 * (120 - step))
        speed = 2.0 + 2.0 * math.sin(step / 9)
        done, claims = done + round(speed), claims + round(speed) + 1
        failed, lost = failed + (step % 40 == 0), lost + (step in (70, 71))
        waited += (round(speed) + 1) * (0.4 + (3.0 if 60 < step < 75 else 0.0))
        if 40 < step < 64:
            continue
        totals = QueueTotals(
            created=0, claims=claims, completions=done, failures=failed, retries=0, dead_letters=0,
            cancellations=0, lease_losses=lost, claim_wait_seconds=waited,
        )  # fmt: skip
        history = history.with_sample(Sample(at, stats(at, totals, 20.0 + step), 0.2 + (step > 110) * step / 20))
    return history


def looks(snap_compare: SnapCompare, fleet: Fleet, size: Sizes, theme: str = "dark") -> bool:
    async def look(pilot: Pilot[None]) -> None:
        app = await loaded(pilot)
        assert isinstance(app.pane, OverviewPane)
        app.pane.history = course()
        app.pane.tick()
        await pilot.pause()

    app = console(directly(fleet.working), start="overview", theme=theme)
    return snap_compare(app, terminal_size=size, run_before=look)


@pytest.fixture
def troubled(story: Fleet) -> Fleet:
    do_the_duties(story)
    story.execute(LATE_DUTY)
    story.execute(PAUSE, AT - timedelta(minutes=12), story.user_id(ADMIN))
    story.execute(UNSEALED, story.team_id())
    return story


@pytest.mark.sizes(NARROW, USUAL, WIDE)
def test_in_trouble(snap_compare: SnapCompare, troubled: Fleet, size: Sizes) -> None:
    assert looks(snap_compare, troubled, size)


@pytest.mark.parametrize("theme", ["light", "ansi"])
def test_in_trouble_in_other_colours(snap_compare: SnapCompare, troubled: Fleet, theme: str) -> None:
    assert looks(snap_compare, troubled, USUAL, theme)


def test_calm(snap_compare: SnapCompare, story: Fleet) -> None:
    mend(story)

    assert looks(snap_compare, story, USUAL)
