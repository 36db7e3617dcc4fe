"""The footer follows the keys, and is made anew only when they are others."""

import gc
from typing import ClassVar
from weakref import WeakSet

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.pilot import Pilot
from textual.widgets import Input
from textual.widgets._footer import FooterKey

from agent_console.tui.widgets.key_footer import KeyFooter, ShownKey, fitting


class TwoFields(App[None]):
    """Two fields with the same keys, and one key of the app that can be taken away."""

    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [Binding("f2", "save", "Save")]

    may_save = True

    def compose(self) -> ComposeResult:
        yield Input(id="one")
        yield Input(id="other")
        yield KeyFooter()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return self.may_save if action == "save" else True


async def keys_of(pilot: Pilot[None]) -> list[FooterKey]:
    await pilot.pause()
    await pilot.pause()
    return list(pilot.app.query(FooterKey))


async def test_the_same_keys_stay_as_they_are_when_the_focus_moves() -> None:
    app = TwoFields()
    async with app.run_test() as pilot:
        before = await keys_of(pilot)

        app.query_one("#other", Input).focus()
        after = await keys_of(pilot)

    assert [key.description for key in before] == ["Save"]
    assert len(after) == 1
    assert after[0] is before[0]


async def test_a_key_that_is_taken_away_leaves_the_footer_and_comes_back() -> None:
    app = TwoFields()
    async with app.run_test() as pilot:
        await keys_of(pilot)
        app.may_save = False
        app.refresh_bindings()
        without = await keys_of(pilot)
        app.may_save = True
        app.refresh_bindings()
        again = await keys_of(pilot)

    assert without == []
    assert [key.description for key in again] == ["Save"]


async def test_keys_that_are_no_longer_shown_are_let_go() -> None:
    app = TwoFields()
    shown = WeakSet[FooterKey]()
    async with app.run_test() as pilot:
        for _ in range(24):
            app.may_save = not app.may_save
            app.refresh_bindings()
            shown.update(await keys_of(pilot))

        gc.collect()
        kept = len(shown)

    assert kept < 4


class ManyKeys(App[None]):
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [Binding("f10", "quit", "Quit")]

    def compose(self) -> ComposeResult:
        yield KeyedInput()
        yield KeyFooter()


class KeyedInput(Input):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Back"),
        Binding("f2", "save", "Save"),
        Binding("f3", "look", "Look again"),
    ]

    def action_leave(self) -> None: ...

    def action_save(self) -> None: ...

    def action_look(self) -> None: ...


def test_what_does_not_fit_whole_is_left_out_the_last_first_and_never_the_way_out() -> None:
    keys = (
        ShownKey("⏎", "Open", "open", True, ""),
        ShownKey("a", "Actions", "act", True, ""),
        ShownKey("esc", "Back", "back", True, "", stays=True),
        ShownKey("q", "Quit", "quit", True, "", stays=True),
    )

    assert fitting(keys, len("⏎ Open a Actions esc Back q Quit")) == keys
    assert fitting(keys, len("⏎ Open a Actions esc Back q Quit") - 1) == (keys[0], keys[2], keys[3])
    assert fitting(keys, 3) == keys[2:]
    assert fitting((), 3) == ()


async def test_a_footer_follows_the_width_of_its_screen() -> None:
    app = ManyKeys()
    async with app.run_test(size=(80, 10)) as pilot:
        wide = [key.description for key in await keys_of(pilot)]
        await pilot.resize_terminal(26, 10)
        narrow = [key.description for key in await keys_of(pilot)]
        await pilot.resize_terminal(80, 10)
        again = [key.description for key in await keys_of(pilot)]

    assert wide == again == ["Back", "Save", "Look again", "Quit"]
    assert narrow == ["Back", "Save", "Quit"]
