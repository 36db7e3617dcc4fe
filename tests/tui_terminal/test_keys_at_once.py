"""A list does its own keys at once, and no key overtakes another for that."""

from typing import ClassVar

import pytest
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.pilot import Pilot
from textual.widget import Widget
from textual.widgets import Input

from agent_console.tui.terminal.keys_at_once import DoesKeysAtOnce
from agent_console.tui.terminal.terminal_app import TerminalApp


class UsualCursor(Widget, can_focus=True):
    """A list of which only the place of the cursor is known; its keys go up to the app and come back."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "go(1)", id="cursor.down"),
        Binding("up", "go(-1)", id="cursor.up"),
        Binding("home", "go(-100)", id="cursor.home"),
    ]
    place = 0

    def action_go(self, by: int) -> None:
        self.place += by


class Cursor(DoesKeysAtOnce, UsualCursor):
    """The same list, as ours are."""


class Passage(Vertical):
    """Through here goes every key that is handed up."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "act"),
        Binding("slash", "type"),
        Binding("home", "leave", priority=True),
    ]

    def __init__(self, *inside: Widget) -> None:
        super().__init__(*inside)
        self.done: list[str] = []

    def action_act(self) -> None:
        self.done.append(f"acted at {self.query_one(UsualCursor).place}")

    def action_leave(self) -> None:
        self.done.append("left")

    async def action_type(self) -> None:
        await self.mount(line := Input())
        line.focus()


class Deep(TerminalApp[None]):
    def __init__(self, cursor: UsualCursor | None = None) -> None:
        super().__init__()
        self.cursor = cursor or Cursor()
        self.passage = Passage(self.cursor)
        self.came_up: list[str] = []

    def compose(self) -> ComposeResult:
        with Vertical(), Vertical():
            yield self.passage

    def on_mount(self) -> None:
        self.cursor.focus()

    def on_key(self, event: events.Key) -> None:
        self.came_up.append(event.key)


async def typed_in_one_go(app: Deep, pilot: Pilot[None], *keys: str) -> None:
    """All of them wait already when the app looks at the first."""
    for key in keys:
        app.post_message(events.Key(key, {"slash": "/"}.get(key, key if len(key) == 1 else None)))
    await pilot.pause()


async def test_a_key_of_the_list_is_done_without_the_way_up() -> None:
    app = Deep()
    async with app.run_test() as pilot:
        await pilot.press("down", "down", "up", "end")

        assert app.cursor.place == 1
        assert app.came_up == ["end"]


async def test_what_can_be_printed_goes_the_usual_way() -> None:
    app = Deep()
    async with app.run_test() as pilot:
        await pilot.press("j")

        assert (app.cursor.place, app.came_up) == (1, ["j"])


async def test_no_key_overtakes_the_one_before() -> None:
    app = Deep()
    async with app.run_test() as pilot:
        await typed_in_one_go(app, pilot, "down", "a", "down", "down", "a", "up")

        assert app.passage.done == ["acted at 1", "acted at 3"]
        assert app.cursor.place == 2


@pytest.mark.parametrize("keys", [("slash", "down", "x", "down"), ("down", "slash", "up"), ("home", "down", "a")])
async def test_what_is_typed_in_one_go_does_what_it_would_have_done_the_long_way(keys: tuple[str, ...]) -> None:
    ended = []
    for cursor in (UsualCursor(), Cursor()):
        app = Deep(cursor)
        async with app.run_test() as pilot:
            await typed_in_one_go(app, pilot, *keys)

            ended.append((cursor.place, app.passage.done, [line.value for line in app.query(Input)]))

    assert ended[0] == ended[1]


async def test_after_a_key_that_somebody_kept_the_list_does_its_own_at_once_again() -> None:
    app = Deep()
    async with app.run_test() as pilot:
        await pilot.press("slash", "x", "y", "enter")
        app.cursor.focus()
        await pilot.pause()
        app.came_up.clear()

        await pilot.press("down", "down")

        assert (app.cursor.place, app.came_up) == (2, [])


async def test_who_claims_a_key_before_everybody_else_gets_it() -> None:
    app = Deep()
    async with app.run_test() as pilot:
        await pilot.press("home")

        assert (app.passage.done, app.cursor.place) == (["left"], 0)


async def test_a_remapped_key_is_done_at_once_and_the_old_one_is_not() -> None:
    app = Deep()
    async with app.run_test() as pilot:
        app.set_keymap({"cursor.down": "f5"})

        await pilot.press("f5", "down")

        assert (app.cursor.place, app.came_up) == (1, ["down"])
