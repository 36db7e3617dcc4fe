"""The line above every pane, at any width."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_console.domain.agents import PoolStatus
from agent_console.tui.link import LinkState, LinkStatus
from agent_console.tui.widgets.header import HeaderFacts, header_line
from tests.attacks.hostile_strings import HOSTILE, dangers
from tests.support.fleet import AT
from tests.tui_console.other_side import MYSELF

RUNNING = PoolStatus(online_count=6, idle_count=2, running_jobs_count=5, offline_count=1, error_count=1, at=AT)
UP = LinkStatus(LinkState.UP)
LOST = LinkStatus(LinkState.LOST, "Nobody answers.", retries=12)


def facts(
    *, profile: str = "prod-eu", read_only: bool = True, link: LinkStatus = UP, seconds_old: float = 0
) -> HeaderFacts:
    return HeaderFacts(
        profile,
        production=True,
        read_only=read_only,
        me=MYSELF,
        pool=RUNNING,
        link=link,
        answered_at=AT - timedelta(seconds=seconds_old),
        now=AT,
    )


@given(
    width=st.integers(40, 200),
    profile=st.sampled_from(["x", "prod-eu", "a" * 60, *HOSTILE.values()]),
    read_only=st.booleans(),
    link=st.sampled_from([UP, LOST, LinkStatus(LinkState.STARTING)]),
    seconds_old=st.sampled_from([0, 50, 400_000]),
)
def test_it_fills_its_line_and_never_more(
    width: int, profile: str, read_only: bool, link: LinkStatus, seconds_old: float
) -> None:
    line = header_line(facts(profile=profile, read_only=read_only, link=link, seconds_old=seconds_old), width)

    assert line.cell_length == width
    assert dangers(line.plain) == []


def test_a_long_address_is_told_by_both_its_ends() -> None:
    line = header_line(facts(profile="/var/lib/agent-console/somewhere/run/agent_console"), 120).plain

    assert line.startswith(" /var/lib/agent…n/agent_console ")


@pytest.mark.parametrize("width", range(40, 201, 10))
@pytest.mark.parametrize(("link", "word"), [(UP, "✓ connected"), (LOST, "✗ lost")], ids=["up", "lost"])
def test_pool_and_connection_are_on_it_at_any_width(width: int, link: LinkStatus, word: str) -> None:
    line = header_line(facts(profile="a" * 60, link=link, seconds_old=400_000), width).plain

    assert "● 5 running" in line
    assert word in line


def test_what_is_missed_least_is_left_out_first() -> None:
    lost = facts(link=LOST, seconds_old=180, read_only=False)
    lines = [header_line(lost, width).plain for width in (100, 70, 50, 40)]

    assert [("Ana Costa" in line, "3m old" in line, "example" in line, "retry 12" in line) for line in lines] == [
        (True, True, True, True),
        (False, True, True, True),
        (False, False, True, True),
        (False, False, False, False),
    ]


def test_old_data_is_never_shown_as_fresh() -> None:
    fresh, old = facts(seconds_old=9), facts(seconds_old=90)

    assert "old" not in header_line(fresh, 120).plain
    assert "✓ connected, data 1m old" in header_line(old, 120).plain


def test_before_anything_is_known_it_says_so() -> None:
    line = header_line(HeaderFacts("local", production=False, read_only=False), 80).plain

    assert line.split() == ["local", "·", "pool", "◌", "connecting"]
