"""Spans of time as an operator reads them."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_console.domain.spans import ago, span, until
from tests.support.fleet import AT

MINUTE, HOUR, DAY = 60, 3600, 86400


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-5, "0s"),
        (0, "0s"),
        (0.9, "0s"),
        (4, "4s"),
        (59.9, "59s"),
        (MINUTE, "1m"),
        (3 * MINUTE + 59, "3m"),
        (HOUR, "1h"),
        (HOUR + 20 * MINUTE, "1h 20m"),
        (9 * HOUR + 59 * MINUTE, "9h 59m"),
        (10 * HOUR + 59 * MINUTE, "10h"),
        (3 * DAY + 4 * HOUR, "3d 4h"),
        (400 * DAY, "400d"),
    ],
)
def test_a_span_has_one_or_two_units(seconds: float, shown: str) -> None:
    assert span(seconds) == shown


@given(st.floats(min_value=0, max_value=900 * DAY))
def test_a_span_fits_the_column_it_is_shown_in(seconds: float) -> None:
    assert len(span(seconds)) <= 7


def test_a_moment_that_never_was_is_a_dash() -> None:
    assert ago(None, AT) == "-"
    assert ago(AT - timedelta(seconds=11), AT) == "11s"


def test_what_lies_ahead_is_counted_down_until_it_is_due() -> None:
    assert until(None, AT) == ""
    assert until(AT + timedelta(minutes=90), AT) == "in 1h 30m"
    assert until(AT, AT) == "due"
    assert until(AT - timedelta(days=1), AT) == "due"
