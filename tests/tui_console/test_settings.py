"""What the team has set, read and changed in the console."""

from textual.widgets import Input, OptionList, Static

from agent_console.tui.app import ConsoleApp
from agent_console.tui.dialogs.list_menu import ListMenu
from agent_console.tui.dialogs.operation_form import DoIt, OperationForm
from agent_console.tui.link import Opening
from tests.support.fleet import Fleet
from tests.tui_console.stage import (
    cells,
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

VIEWER = "vera@example.com"


async def go_to_settings(app: ConsoleApp) -> None:
    app.action_more()
    await until_on(app, ListMenu)
    menu = app.screen.query_one(OptionList)
    menu.highlighted = menu.get_option_index("settings")
    menu.action_select()
    await until(lambda: list_of(app).kind.name == "settings" and has_list(app), "the settings")


async def test_enter_edits_the_setting_under_the_cursor(opening: Opening, fleet: Fleet) -> None:
    app = console(opening)
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await go_to_settings(app)
        assert cells(list_of(app), "max_hops") == ["max_hops", "2", "2", "1 to 10", "-", "-"]
        list_of(app).table.move_to("max_hops")

        await pilot.press("enter")
        await until_on(app, OperationForm)
        field = app.screen.query_one("#field-value", Input)
        assert "max_hops" in str(app.screen.query_one(".about", Static).content)
        assert field.value == "2"
        field.value = "4"
        app.screen.query_one(DoIt).focus()
        await pilot.press("enter")

        await until(lambda: cells(list_of(app), "max_hops")[1] == "4", "the new value in the list")
        assert cells(list_of(app), "max_hops")[4] == "Ana Costa"
        assert fleet.one("select value from settings where name = 'max_hops'") == 4


async def test_a_value_out_of_bounds_is_refused_with_what_was_typed_still_there(fleet: Fleet) -> None:
    app = console(directly(fleet.working))
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await go_to_settings(app)
        list_of(app).table.move_to("max_hops")
        await pilot.press("a")
        await until_on(app, OperationForm)

        app.screen.query_one("#field-value", Input).value = "11"
        app.screen.query_one(DoIt).focus()
        await pilot.press("enter")

        await until(lambda: "must be 1 to 10" in shown_text(app), "the refusal")
        assert app.screen.query_one("#field-value", Input).value == "11"


async def test_the_cursor_stays_on_its_setting_when_all_of_them_are_fetched_again(fleet: Fleet) -> None:
    app = console(directly(fleet.working))
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await go_to_settings(app)
        order = row_ids(list_of(app))
        list_of(app).table.move_to(order[3])

        fleet.execute(
            "insert into settings (team_id, name, value, updated_by_user_id) values (%s, %s, '7', %s)",
            *(fleet.team_id(), order[0], fleet.user_id("ana@example.com")),
        )
        list_of(app).refetch()
        await until(lambda: cells(list_of(app), order[0])[1] == "7", "the value somebody else has set")

        assert list_of(app).table.cursor_id == order[3]
        assert row_ids(list_of(app)) == order


async def test_who_may_not_change_it_reads_it_whole(fleet: Fleet) -> None:
    app = console(directly(fleet.working, user=VIEWER))
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await go_to_settings(app)

        await pilot.press("enter")

        await until(lambda: app.detail is not None, "the detail")
        assert "Days before a sealed month" in shown_text(app)
