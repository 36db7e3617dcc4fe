"""Everything by name: the command line, the palette, the help that can be searched, and remapped keys."""

import pytest
from textual.filter import Monochrome
from textual.widgets import Input

from agent_console.domain.ids import JobId
from agent_console.domain.permissions import Role
from agent_console.domain.states import JobStatus
from agent_console.tui.app import ConsoleApp
from agent_console.tui.commands import (
    Command,
    Does,
    LiveKey,
    UnknownCommand,
    command_in,
    completions,
    every_command,
    fuzzy,
    noun_of,
)
from agent_console.tui.dialogs.command_line import CommandScreen
from agent_console.tui.dialogs.operation_form import OperationForm
from agent_console.tui.dialogs.palette import Palette
from agent_console.tui.help import HelpScreen
from agent_console.tui.keymap import DeclaredKey, every_key, keymap_problems
from agent_console.tui.link import Opening
from agent_console.tui.panes.every import KINDS
from agent_console.tui.setup import Setup
from tests.support.fleet import Fleet
from tests.tui_console.stage import (
    cells,
    console,
    directly,
    fixed_clock,
    list_of,
    loaded,
    press,
    row_ids,
    shown_text,
    until,
    until_on,
)
from tests.tui_console.test_filtering import typed

KNOWN = (
    Command("jobs", "The queue", Does.PANE, "jobs"),
    Command("jobs cancel", "Cancel a job", Does.OPERATION, "jobs.cancel", "job_…"),
    Command("jobs create", "Put one in", Does.OPERATION, "jobs.create"),
    Command("agents", "The pool", Does.PANE, "agents"),
    Command("theme", "Another look", Does.THEME, argument="NAME", values=("dark", "light"), needs_argument=True),
)


def test_a_line_is_the_longest_command_it_begins_with() -> None:
    assert [(command.name, rest) for command, rest in (command_in(KNOWN, line) for line in LINES)] == [
        ("jobs", ""),
        ("jobs cancel", "job_1"),
        ("agents", ""),
        ("theme", "light"),
    ]


LINES = ("jobs", " Jobs  cancel job_1", "ag", "theme light")


def test_what_follows_a_command_is_kept_as_it_was_typed() -> None:
    known = (*KNOWN, Command("filter", "Only some", Does.FILTER, argument="FILTER"))

    assert command_in(known, '  filter   "a  b" status:failed ')[1] == '"a  b" status:failed'
    assert command_in(known, "jobs   cancel  job_1")[1] == "job_1"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("agnets", "Did you mean agents?"),
        ("jobs-c", "Did you mean jobs"),
        ("j", "That could be jobs, jobs cancel"),
        ("zzzzzz", "There is no command zzzzzz."),
        ("", "Type a command"),
    ],
)
def test_what_is_no_command_is_told_with_the_nearest(line: str, says: str) -> None:
    with pytest.raises(UnknownCommand) as refused:
        command_in(KNOWN, line)

    assert says in str(refused.value)


def test_what_may_follow_is_offered() -> None:
    assert completions(KNOWN, "jobs c").values == ("jobs cancel", "jobs create")
    assert completions(KNOWN, "theme l").values == ("light",)
    assert completions(KNOWN, "theme light").values == ()


def test_a_few_letters_find_a_command_the_closest_first() -> None:
    assert [command.name for command in fuzzy(KNOWN, "cancel")] == ["jobs cancel"]
    assert fuzzy(KNOWN, "jbcn")[0].name == "jobs cancel"
    assert fuzzy(KNOWN, "jobs")[0].name == "jobs"
    assert fuzzy(KNOWN, "pool")[0].name == "agents", "also by what it says of itself"
    assert fuzzy(KNOWN, "qqq") == ()


def test_the_registry_holds_what_a_role_may_do_and_nothing_else() -> None:
    keys = (LiveKey("r", "list.refresh", "Refresh"),)

    def names(role: Role | None) -> set[str]:
        return {command.name for command in every_command(KINDS, ("overview",), role, keys, on_a_list=True)}

    admin, viewer, nobody = names(Role.ADMIN), names(Role.VIEWER), names(None)
    assert {"overview", "agents", "registration-tokens", "theme", "filter", "refresh"} <= nobody
    assert {"jobs cancel", "jobs cancel-many", "queue pause", "pause", "agents drain"} <= admin
    assert not {"jobs cancel", "pause"} & (viewer | nobody)
    assert not {"approvals approve", "routes set"} & admin, "what is decided on a screen of its own"
    assert noun_of(KINDS, "job_01h455vb4pex5vsknk084sn02q") == "jobs"
    assert noun_of(KINDS, "nothing") is None


async def test_panes_filters_and_looks_by_name(opening: Opening) -> None:
    app = console(opening)
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)

        await pilot.press("colon")
        await until_on(app, CommandScreen)
        await typed(pilot, "jo")
        assert "jobs cancel" in shown_text(app)
        await typed(pilot, "bs")
        await press(pilot, "enter")
        await until(lambda: app.pane.pane_name == "jobs", "the jobs")

        await pilot.press("colon")
        await until_on(app, CommandScreen)
        await typed(pilot, "filter status:failed")
        await press(pilot, "enter")
        await until(lambda: list_of(app).filter_text == "status:failed" and app.pane.has_answer, "filtered")
        assert {cells(list_of(app), row_id)[0] for row_id in row_ids(list_of(app))} == {"✗ failed"}

        await pilot.press("colon")
        await until_on(app, CommandScreen)
        await pilot.press("up", "up")
        assert app.screen.query_one(Input).value == "jobs"
        await pilot.press("ctrl+u")
        await typed(pilot, "theme lihgt")
        await pilot.press("enter")
        assert "theme takes dark, mono, light, ansi" in shown_text(app)
        await pilot.press(*["backspace"] * 4, "i", "tab", "enter")
        await until(lambda: app.theme == "console-light", "the other look")
        app.show_theme("mono")
        [without_colour] = (one for one in app.get_line_filters() if isinstance(one, Monochrome))
        assert without_colour in app.get_line_filters(), (
            "one for all: what it made of a line is kept under its name"
        )
        app.show_theme("dark")
        assert not any(isinstance(line_filter, Monochrome) for line_filter in app.get_line_filters())


async def test_earlier_lines_begin_with_the_latest_each_time_and_end_a_completion(fleet: Fleet) -> None:
    app = console(directly(fleet.working))
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        for line in ("theme dark", "theme light"):
            await pilot.press("colon")
            await typed(pilot, line)
            await pilot.press("enter")
            await until(lambda: len(app.screen_stack) == 1, "done")

        await pilot.press("colon", "up", "escape")
        await until(lambda: len(app.screen_stack) == 1, "left")
        await pilot.press("colon", "up")
        assert app.screen.query_one(Input).value == "theme light"

        await pilot.press("ctrl+u", "j", "tab", "up", "tab")
        assert app.screen.query_one(Input).value == "theme light", "what was being completed is gone"


async def test_an_unknown_command_stays_with_its_nearest_name(fleet: Fleet) -> None:
    app = console(directly(fleet.working))
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await pilot.press("colon")
        await until_on(app, CommandScreen)
        await typed(pilot, "agnets")

        await pilot.press("enter")

        assert "There is no command agnets. Did you mean agents?" in shown_text(app)
        await pilot.press("escape")
        await until(lambda: len(app.screen_stack) == 1, "nothing was done")


async def test_an_act_by_name_and_id_opens_the_form_of_that_very_thing(fleet: Fleet) -> None:
    app = console(directly(fleet.working))
    job = str(fleet.first_job(JobStatus.QUEUED))
    async with app.run_test(size=(80, 40)) as pilot:
        await loaded(pilot)
        await pilot.press("colon")
        await until_on(app, CommandScreen)
        await typed(pilot, f"jobs cancel {job}")

        await pilot.press("enter")
        await until_on(app, OperationForm)

        assert job in shown_text(app)
        assert fleet.first_job(JobStatus.QUEUED) == JobId.parse(job), "nothing was done yet"


async def test_the_palette_finds_an_act_for_the_row_under_the_cursor(fleet: Fleet) -> None:
    app = console(directly(fleet.working))
    async with app.run_test(size=(80, 40)) as pilot:
        await loaded(pilot)
        agent = list_of(app).table.cursor_id
        await pilot.press("ctrl+p")
        await until_on(app, Palette)
        await typed(pilot, "command")
        assert "The key :" in shown_text(app), "a key is told as it is written on the keyboard"
        await pilot.press(*["backspace"] * len("command"))
        await typed(pilot, "agdrn")

        await pilot.press("enter")
        await until_on(app, OperationForm)

        assert agent is not None
        assert agent in shown_text(app)


async def test_a_read_only_console_has_no_acts_by_name(fleet: Fleet) -> None:
    app = console(directly(fleet.working), read_only=True)
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await pilot.press("colon")
        await until_on(app, CommandScreen)
        await typed(pilot, "jobs cancel")

        await pilot.press("enter")

        assert "There is no command jobs cancel." in shown_text(app)


async def test_help_is_searched_and_tells_ids(fleet: Fleet) -> None:
    app = console(directly(fleet.working))
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await press(pilot, "question_mark")
        await until_on(app, HelpScreen)
        assert "Here" in shown_text(app)

        await pilot.press("slash")
        await typed(pilot, "refresh")

        assert "list.refresh" in shown_text(app)
        assert "table.mark" not in shown_text(app)
        await pilot.press("escape")
        await until(lambda: len(app.screen_stack) == 1, "closed")


def test_every_key_is_declared_under_one_id_and_does_one_thing_in_a_place() -> None:
    known = every_key()

    assert len(known) > 100
    assert {"app.command", "list.filter", "find.next", "pane.jobs"} <= {key.id for key in known}
    assert all("." in key.id and key.keys and key.words for key in known)


def test_unknown_ids_and_clashes_are_told() -> None:
    known = (
        DeclaredKey("app.help", ("question_mark",), "Help"),
        DeclaredKey("list.refresh", ("r",), "Refresh"),
        DeclaredKey("list.act", ("a",), "Actions"),
        DeclaredKey("approval.approve", ("a",), "Approve"),
    )

    assert keymap_problems({"list.refresh": "x"}, known) == ()
    assert keymap_problems({"list.refesh": "x"}, known) == (
        "There is no key with the id list.refesh. Did you mean list.refresh?",
    )
    assert keymap_problems({"list.refresh": "a,f5"}, known) == (
        "a is the key of list.refresh and of list.act: only one of them works.",
    )
    # What both have anyway is meant; a key has one name, however it is written.
    shared = (DeclaredKey("app.quit", ("q",), "Quit"), DeclaredKey("detail.close", ("escape", "q"), "Back"))
    assert keymap_problems({"app.quit": "q,f10"}, shared) == ()
    assert keymap_problems({"app.quit": "q,escape"}, shared) == (
        "escape is the key of app.quit and of detail.close: only one of them works.",
    )
    slash = (DeclaredKey("list.filter", ("slash",), "Filter"), DeclaredKey("app.help", ("f1",), "Help"))
    assert keymap_problems({"app.help": "/"}, slash) == (
        "/ is the key of app.help and of list.filter: only one of them works.",
    )
    assert keymap_problems({"approval.approve": "question_mark"}, known) == (
        "question_mark is the key of approval.approve and of app.help: only one of them works.",
    )


async def test_a_remapped_key_works_and_a_clash_is_told_at_the_start(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A notice goes by itself after some seconds, and a start may take longer.
    monkeypatch.setattr(ConsoleApp, "NOTIFICATION_TIMEOUT", 3600.0)
    keymap = {"list.refresh": "f5", "list.act": "f", "list.refesh": "f9"}
    setup = Setup(directly(fleet.working), "example", start="jobs", keymap=keymap)
    app = ConsoleApp(lambda: setup, clock=fixed_clock)
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await until(lambda: bool(len(app._notifications)), "a word about the clash")

        said = [note.message for note in app._notifications]
        live = {active.binding.id: key for key, active in app.screen.active_bindings.items()}

        # One notice, however much is wrong: they would cover the screen.
        assert said == [
            "There is no key with the id list.refesh. Did you mean list.refresh? And 1 more: ? lists them."
        ]
        assert app.key_problems[1] == "f is the key of list.act and of list.group: only one of them works."
        assert live["list.refresh"] == "f5"
