"""The groups of tests that take longest begin first: one that began last would run on when all others are done.

Only with `--no-loadscope-reorder`, as in `make test`: by itself xdist begins with the groups that have most tests.
"""

import pytest

from tests.support.warm_start import PROGRAMS

JOURNEYS = "journeys"
JOURNEYS_OF_THE_DEMO = "journeys of the demo"
"""They share a database, which the first of them makes."""
LONGEST = (JOURNEYS_OF_THE_DEMO, PROGRAMS, JOURNEYS)


def turn(item: pytest.Item) -> int:
    """After the longest groups the others, and then who may be anywhere; among equals it stays as it was."""
    marked = item.get_closest_marker("xdist_group")
    if marked is None:
        return len(LONGEST) + 1
    group = marked.args[0]
    return LONGEST.index(group) if group in LONGEST else len(LONGEST)
