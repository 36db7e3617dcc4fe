"""The tour: a small box beside what it talks about, at every size."""

import pytest

from tests.snapshots.conftest import NARROW, USUAL, LooksRight, Sizes
from tests.support.fleet import Fleet
from tests.tui_console.stage import console, directly

BEGINS = ("question_mark", "t")


@pytest.mark.sizes(NARROW, USUAL)
def test_what_needs_you_is_shown_beside_the_words_about_it(
    looks_right: LooksRight, still_story: Fleet, size: Sizes
) -> None:
    assert looks_right(console(directly(still_story.working)), size, *BEGINS)


@pytest.mark.sizes(NARROW, USUAL)
def test_the_jobs_are_shown_beside_the_words_about_them(
    looks_right: LooksRight, still_story: Fleet, size: Sizes
) -> None:
    assert looks_right(console(directly(still_story.working)), size, *BEGINS, "enter", "enter", "enter")
