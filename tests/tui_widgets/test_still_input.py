"""A line to type into: what was typed there stays, whichever way one comes back to it."""

from textual.app import App, ComposeResult

from agent_console.tui.widgets.still_input import StillInput


class TwoLines(App[None]):
    def compose(self) -> ComposeResult:
        yield StillInput(value="0", id="first")
        yield StillInput(id="second")


async def test_who_comes_back_to_a_line_goes_on_writing_and_does_not_write_it_anew() -> None:
    app = TwoLines()
    async with app.run_test() as pilot:
        await pilot.press("5", "tab", "n", "o", "tab", "tab", "t", "tab", "1")

        assert app.query_one("#second", StillInput).value == "not"
        assert app.query_one("#first", StillInput).value == "51"
