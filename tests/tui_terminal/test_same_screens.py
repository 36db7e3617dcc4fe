"""Whatever happens, the terminal shows what stock Textual would have shown on it."""

from random import Random

import pytest
from textual.app import App
from textual.pilot import Pilot

from agent_console.tui.terminal.cell_diff import CellDiff
from tests.tui_terminal.collecting import collecting, play, settled
from tests.tui_terminal.emulator import Seen, terminal
from tests.tui_terminal.fleet import OurFleet, StockFleet, change

SIZE = (80, 24)
STEPS = 6


async def frames(app: App[None], written: list[str], seed: int) -> list[Seen]:
    """What the terminal shows at the start and after each step."""
    screen, stream = terminal(*SIZE)
    shown: list[Seen] = []

    async def story(pilot: Pilot[object]) -> None:
        chance = Random(seed)
        for _ in range(STEPS):
            stream.feed("".join(written))
            written.clear()
            shown.append(screen.seen())
            change(app, chance)
            await pilot.pause()
            await settled(app)

    await play(app, story, SIZE)
    return shown


@pytest.mark.parametrize(
    ("seed", "erase_keeps_background", "no_colour"),
    [(1, True, False), (2, False, False), (3, True, True)],
    ids=["erasing", "writing-spaces", "no-colour"],
)
async def test_every_step_shows_what_stock_textual_shows(
    monkeypatch: pytest.MonkeyPatch, seed: int, erase_keeps_background: bool, no_colour: bool
) -> None:
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.delenv("NO_COLOR", raising=False)
    if no_colour:
        monkeypatch.setenv("NO_COLOR", "1")
    stock_bytes: list[str] = []
    our_bytes: list[str] = []
    stock, ours = StockFleet(collecting(stock_bytes)), OurFleet(collecting(our_bytes))
    ours.cell_diff = CellDiff(erase_keeps_background=erase_keeps_background)

    expected = await frames(stock, stock_bytes, seed)
    shown = await frames(ours, our_bytes, seed)

    for step, (wanted, got) in enumerate(zip(expected, shown, strict=True)):
        assert got == wanted, f"step {step}"
