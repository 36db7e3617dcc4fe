"""The overview: calm, in trouble, at every size and in every palette."""

from datetime import timedelta

import pytest
from textual.pilot import Pilot

from agent_console.tui.panes.overview import pane as overview
from agent_console.tui.panes.overview.pane import OverviewPane
from tests.snapshots.conftest import NARROW, USUAL, WIDE, Sizes, SnapCompare
from tests.support.fleet import AT, Fleet
from tests.support.told_course import course
from tests.tui_console.stage import ADMIN, console, directly, loaded
from tests.tui_console.test_overview import PAUSE, do_the_duties, mend

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
