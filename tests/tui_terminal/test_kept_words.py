"""Words that tick by, such as a tail that runs all night, are forgotten."""

import tracemalloc

from agent_console.tui.terminal.cells import cells_of
from agent_console.tui.terminal.hidden_characters import shown
from agent_console.tui.terminal.looks import PLAIN

LINES = 3_000
MOST_BYTES = 4_000_000


def test_what_is_kept_of_a_long_tail_is_a_screen_or_two() -> None:
    for number in range(1_200):
        cells_of(shown(f"✓ warming up, line {number:09} of a job that says the same as long as it runs"), PLAIN)

    tracemalloc.start()
    for number in range(LINES):
        cells_of(shown(f"✓ succeeded, line {number:09} of a job that says the same as long as it runs"), PLAIN)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert kept <= MOST_BYTES
