"""Every act that can be given by name opens what asks about it, or says why not: generated from the operations."""

from textual.pilot import Pilot
from textual.widgets import Input

from agent_console.domain.ids import KINDS as ID_KINDS
from agent_console.domain.ids import OperatorTokenId
from agent_console.domain.permissions import Role
from agent_console.tui.app import ConsoleApp
from agent_console.tui.commands import Command, Does, every_command
from agent_console.tui.dialogs.operation_form import OperationForm
from agent_console.tui.dialogs.palette import Palette
from agent_console.tui.panes.every import KINDS
from tests.support.fleet import Fleet
from tests.tui_console.stage import (
    ADMIN,
    console,
    directly,
    has_list,
    list_of,
    loaded,
    row_ids,
    shown_text,
    until,
    until_on,
)
from tests.tui_console.test_filtering import typed

ACTS = tuple(
    command
    for command in every_command(KINDS, (), Role.ADMIN, (), on_a_list=False)
    if command.does is Does.OPERATION
)
OF_A_LIST = tuple(command for command in ACTS if not command.argument)
OF_ONE = tuple(command for command in ACTS if command.argument)


async def given(pilot: Pilot[None], line: str) -> None:
    await pilot.press("colon")
    pilot.app.screen.query_one(Input).value = line
    await pilot.press("enter")


def pane_of(command: Command) -> str:
    noun = command.what.partition(".")[0]
    return "jobs" if noun == "queue" else noun


async def at_its_list(app: ConsoleApp, pilot: Pilot[None], name: str) -> None:
    await given(pilot, name.replace("_", "-"))
    await until(lambda: app.pane.pane_name == name and has_list(app), name)


async def test_what_is_of_a_list_needs_no_thing_and_minds_none_under_the_cursor(fleet: Fleet) -> None:
    assert {"pause", "queue resume", "jobs create", "jobs cancel-many", "users create", "connectors create"} <= {
        command.name for command in OF_A_LIST
    }
    app = console(directly(fleet.working), start="jobs")
    async with app.run_test(size=(80, 40)) as pilot:
        await loaded(pilot)
        on_a_row = 0
        for command in sorted(OF_A_LIST, key=pane_of):
            await at_its_list(app, pilot, pane_of(command))
            on_a_row += bool(row_ids(list_of(app)))

            await given(pilot, command.name)

            await until(lambda: isinstance(app.screen, OperationForm), f"the form of {command.name}")
            assert f"{list_of(app).kind.title}: " in shown_text(app), command.name
            await pilot.press("escape")
            await until(lambda: len(app.screen_stack) == 1, "the list again")
        assert on_a_row > len(OF_A_LIST) / 2

        await at_its_list(app, pilot, "jobs")
        await pilot.press("ctrl+p")
        await until_on(app, Palette)
        await typed(pilot, "jobs create")
        await pilot.press("enter")
        await until_on(app, OperationForm)


async def test_no_act_on_one_thing_is_silent_about_an_id_that_nothing_has(fleet: Fleet) -> None:
    assert {"operator-tokens revoke", "worker-tokens rotate", "settings set"} <= {one.name for one in OF_ONE}
    app = console(directly(fleet.working))
    async with app.run_test(size=(80, 40)) as pilot:
        await loaded(pilot)
        for command in OF_ONE:
            kind = ID_KINDS.get(command.argument.partition("_")[0])
            app.clear_notifications()

            await given(pilot, f"{command.name} {'none' if kind is None else kind(int=7 << 76 | 2 << 62)}")

            await until(lambda: bool(app._notifications), f"a word about {command.name}")
        await given(pilot, "jobs cancel nonsense")
        await until(lambda: any("is not a job id" in note.message for note in app._notifications), "what an id is")


async def test_what_nothing_answers_with_alone_is_found_in_its_list(fleet: Fleet) -> None:
    fleet.token(ADMIN)
    token = OperatorTokenId(str(fleet.one("select id::text from operator_tokens")))
    app = console(directly(fleet.working))
    async with app.run_test(size=(80, 40)) as pilot:
        await loaded(pilot)
        for line, named in (
            (f"operator-tokens revoke {token}", str(token)),
            ("settings set max_hops", "max_hops"),
        ):
            await given(pilot, line)
            await until_on(app, OperationForm)
            assert named in shown_text(app)
            await pilot.press("escape")
            await until(lambda: len(app.screen_stack) == 1, "nothing was done")
