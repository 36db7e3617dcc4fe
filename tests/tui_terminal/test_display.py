"""What an app sends, and that nothing else about it has changed."""

import re
from collections.abc import Awaitable, Callable

import pytest
from textual import events, messages
from textual.app import App
from textual.coordinate import Coordinate
from textual.geometry import Offset, Size
from textual.pilot import Pilot
from textual.widgets import DataTable, Static

from tests.tui_terminal.collecting import collecting, play, settled
from tests.tui_terminal.emulator import terminal
from tests.tui_terminal.fleet import Elsewhere, OurFleet, StockFleet

LARGE = (120, 40)


@pytest.fixture(autouse=True)
def colourful(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.delenv("NO_COLOR", raising=False)


async def sent_by(app: App[None], written: list[str]) -> str:
    """Everything written until the app has nothing left to draw."""
    await settled(app)
    data = "".join(written)
    written.clear()
    return data


async def test_few_bytes() -> None:
    written: list[str] = []
    app = OurFleet(collecting(written))
    sent: dict[str, int] = {}

    async def story(pilot: Pilot[object]) -> None:
        sent["first paint"] = len((await sent_by(app, written)).encode())
        app.post_message(messages.TerminalSupportsSynchronizedOutput())
        await pilot.pause()
        app.refresh()
        app.query_one(DataTable).refresh()
        sent["unchanged"] = len(await sent_by(app, written))
        for row in range(10):
            app.query_one(DataTable).update_cell_at(Coordinate(row, 2), "Queued")
        sent["ten cells"] = len((await sent_by(app, written)).encode())

    await play(app, story, LARGE)

    assert sent["first paint"] <= 25_000
    assert sent["unchanged"] == 0
    assert 10 <= sent["ten cells"] <= 600


async def test_a_cursor_that_moved_is_sent_though_no_cell_changed() -> None:
    written: list[str] = []
    app = OurFleet(collecting(written))

    async def story(pilot: Pilot[object]) -> None:
        await sent_by(app, written)
        app.cursor_position = Offset(5, 6)
        app.refresh()
        assert await sent_by(app, written) == "\x1b[7;6H"

    await play(app, story)


async def redrawn(app: OurFleet) -> None:
    app.redraw()


async def back_from_a_suspension(app: OurFleet) -> None:
    app.app_resume_signal.publish(app)


async def resized_there_and_back(app: OurFleet) -> None:
    for size in (Size(60, 24), Size(80, 24)):
        app.post_message(events.Resize(size, size))


@pytest.mark.parametrize("heal", [redrawn, back_from_a_suspension, resized_there_and_back])
async def test_what_was_written_over_is_sent_again(heal: Callable[[OurFleet], Awaitable[None]]) -> None:
    written: list[str] = []
    app = OurFleet(collecting(written))
    screen, stream = terminal(80, 24)

    async def story(pilot: Pilot[object]) -> None:
        stream.feed(await sent_by(app, written))
        before = screen.seen()
        stream.feed("\x1b[m\x1b[2J\x1b[HBroadcast message from root")
        await heal(app)
        await pilot.pause()
        stream.feed(await sent_by(app, written))
        assert screen.seen() == before

    await play(app, story)


async def test_an_update_that_textual_drops_is_not_taken_as_shown() -> None:
    written: list[str] = []
    app = OurFleet(collecting(written))
    screen, stream = terminal(80, 24)

    async def story(pilot: Pilot[object]) -> None:
        with app.batch_update():
            app.query_one("#words", Static).update("while batched")
            app._display(app.screen, app.screen._compositor.render_full_update())
        stream.feed(await sent_by(app, written))
        assert "while batched" in "\n".join(screen.text())

    await play(app, story)


async def test_another_screen_and_back() -> None:
    written: list[str] = []
    app = OurFleet(collecting(written))
    screen, stream = terminal(80, 24)

    async def story(pilot: Pilot[object]) -> None:
        stream.feed(await sent_by(app, written))
        before = screen.seen()
        await app.push_screen(Elsewhere())
        stream.feed(await sent_by(app, written))
        elsewhere = screen.text()[0]
        app.pop_screen()
        await pilot.pause()
        stream.feed(await sent_by(app, written))
        assert elsewhere.startswith("another pane 漢字")
        assert screen.seen() == before

    await play(app, story)


async def test_a_picture_of_the_app_is_the_picture_stock_textual_takes() -> None:
    pictures = []
    for app in (StockFleet(), OurFleet()):
        async with app.run_test(size=(80, 24)) as pilot:
            await pilot.pause()
            pictures.append(re.sub(r"terminal-\d+", "terminal", app.export_screenshot()))

    stock, ours = pictures
    assert ours == stock
