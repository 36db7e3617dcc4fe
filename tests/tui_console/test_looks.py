"""How states look: always a glyph and a word."""

import pytest
from textual.content import Content

from agent_console.domain.agents import PoolStatus
from agent_console.domain.states import JobStatus, Presence
from agent_console.tui.looks import JOB_STATUS, PRESENCE, pool_badge, progress_bar
from tests.support.fleet import AT


def pool(online: int, idle: int, running: int) -> PoolStatus:
    return PoolStatus(
        online_count=online, idle_count=idle, running_jobs_count=running, offline_count=0, error_count=0, at=AT
    )


def styles(badge: Content) -> set[str]:
    return {str(span.style) for span in badge.spans}


@pytest.mark.rule("U000-12")
def test_nobody_online_is_offline_in_red() -> None:
    badge = pool_badge(pool(online=0, idle=0, running=3))

    assert badge.plain == "○ Offline"
    assert styles(badge) == {"$text-error bold"}


@pytest.mark.rule("U000-12")
def test_nobody_at_work_is_the_idle_count() -> None:
    assert pool_badge(pool(online=4, idle=3, running=0)).plain == "◌ 3 idle"


@pytest.mark.rule("U000-12")
def test_somebody_at_work_is_the_running_count() -> None:
    assert pool_badge(pool(online=4, idle=1, running=7)).plain == "● 7 running"


def test_a_badge_that_may_be_wrong_has_no_colour_of_a_state() -> None:
    badge = pool_badge(pool(online=4, idle=1, running=7), stale=True)

    assert badge.plain == "● 7 running"
    assert styles(badge) == {"$foreground-muted"}


@pytest.mark.rule("U000-12")
def test_every_state_has_a_glyph_of_its_own() -> None:
    shown = {status.value for status in JobStatus} | {"cancelling"}

    assert set(JOB_STATUS) == shown
    assert len({glyph for glyph, _ in JOB_STATUS.values()}) == len(shown)
    assert len({glyph for glyph, _ in PRESENCE.values()}) == len(Presence)


@pytest.mark.parametrize(
    ("percentage", "shown"),
    [
        (0, "  0% ░░░░░░░░"),
        (45, " 45% ████░░░░"),
        (99.989, " 99% ████████"),
        (100, "100% ████████"),
        (1e308, "100% ████████"),
        (-7, "  0% ░░░░░░░░"),
    ],
)
def test_a_progress_bar_stays_within_its_bounds(percentage: float, shown: str) -> None:
    assert progress_bar(percentage) == shown
