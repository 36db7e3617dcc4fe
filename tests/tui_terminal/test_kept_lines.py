"""Whoever opens and closes screens all night holds no more than in the evening."""

import gc
from weakref import ReferenceType, ref

from textual.app import ComposeResult
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widgets import Static

from agent_console.tui.terminal.terminal_app import TerminalApp


class Detail(Screen[None]):
    def compose(self) -> ComposeResult:
        yield Static("lines that were painted", id="painted")


async def opened_and_closed(pilot: Pilot[None]) -> ReferenceType[object]:
    """What its widget kept of its lines, while it was there."""
    await pilot.app.push_screen(Detail())
    await pilot.pause()
    lines = pilot.app.screen.query_one("#painted")._styles_cache
    assert lines._cache, "nothing was painted"
    await pilot.app.pop_screen()
    await pilot.pause()
    return ref(lines)


async def test_the_lines_of_a_screen_go_with_it() -> None:
    async with TerminalApp[None]().run_test() as pilot:
        kept = [await opened_and_closed(pilot) for _ in range(5)]
        # The last that was shown may still be held by what is drawn over it.
        await opened_and_closed(pilot)

        gc.collect()
        assert [lines() for lines in kept] == [None] * 5
