"""Doing something in the console: whatever is declared can be reached, filled in and refused."""

from contextlib import nullcontext

import pytest
from textual.widgets import Input, OptionList, Static

from agent_console.domain.permissions import Role
from agent_console.domain.records import Record
from agent_console.domain.team_settings import Setting
from agent_console.repository.operations import JOBS_CREATE, JOBS_LIST, OPERATIONS
from agent_console.repository.operations.credentials import REGISTRATION_TOKENS_MINT
from agent_console.repository.operations.people import SETTINGS_SET
from agent_console.repository.operations.threads import THREADS_PARTICIPANTS
from agent_console.repository.postgres.repository import open_direct
from agent_console.tui.actions import list_actions, row_actions
from agent_console.tui.app import ConsoleApp
from agent_console.tui.dialogs.form_fields import FormField, form_fields, request_from
from agent_console.tui.dialogs.list_menu import ListMenu
from agent_console.tui.dialogs.operation_form import DoIt, OperationForm
from agent_console.tui.dialogs.secret_screen import SecretScreen
from agent_console.tui.link import LinkState
from agent_console.tui.panes.derived import listing_of
from agent_console.tui.panes.every import MORE
from tests.support.fleet import Fleet
from tests.tui_console.dropped_line import HeldLine, over_a_dropped_line
from tests.tui_console.stage import ADMIN, choose, console, directly, list_of, loaded, shown_text, until, until_on

MAX_HOPS = Setting(
    name="max_hops",
    value=4,
    default=2,
    minimum=1,
    maximum=10,
    help="How many agents may pass one request on.",
    updated_by_user_id=None,
    updated_by=None,
    updated_at=None,
)


class Typed(Record):
    type: str


LISTS = ("approvals", "agents", "audit", "jobs", "routes", "sessions", "threads", *MORE)
LISTINGS = (*map(listing_of, LISTS), THREADS_PARTICIPANTS)


def test_every_change_a_person_can_make_is_in_the_console() -> None:
    reachable = {
        action.operation.name
        for listing in LISTINGS
        for action in (*row_actions(listing, Role.ADMIN), *list_actions(listing, Role.ADMIN))
    }
    for_people = {
        operation.name
        for operation in OPERATIONS
        if operation.changes and not operation.public and operation.permission != "act_as_agent"
    }

    assert for_people - reachable == set()


def test_a_viewer_is_offered_next_to_nothing() -> None:
    for listing in LISTINGS:
        for action in (*row_actions(listing, Role.VIEWER), *list_actions(listing, Role.VIEWER)):
            assert action.operation.permission is None, action.operation.name


def test_a_form_is_made_of_the_fields_of_the_request() -> None:
    fields = {field.name: field for field in form_fields(JOBS_CREATE)}

    assert list(fields)[:2] == ["type", "payload"]
    assert fields["type"].required
    assert fields["priority"].default == "0"
    assert fields["bound_agent_id"].label == "bound agent"
    assert "JSON" in fields["payload"].help


@pytest.mark.parametrize(
    ("typed", "problems"),
    [
        ({"type": "x", "payload": "{}"}, set[str]()),
        ({"type": "", "payload": "{}"}, {"type"}),
        ({"type": "x", "payload": "{"}, {"payload"}),
        ({"type": "x", "payload": "[" * 100_000}, {"payload"}),
        ({"type": "x", "payload": "{}", "priority": "many"}, {"priority"}),
        ({"type": "x", "payload": "{}", "bound_agent_id": "job_01h455vb4pex5vsknk084sn02q"}, {""}),
    ],
)
def test_what_is_typed_is_read_through_the_request_itself(typed: dict[str, str], problems: set[str]) -> None:
    request, found = request_from(JOBS_CREATE, {}, typed)

    assert set(found) == problems
    assert (request is None) == bool(problems)


def test_a_required_number_stands_there_as_it_is_now() -> None:
    (value,) = form_fields(SETTINGS_SET, MAX_HOPS)

    assert (value.name, value.default) == ("value", "4")


def test_words_of_others_are_never_put_into_a_field() -> None:
    fields = {field.name: field for field in form_fields(JOBS_CREATE, Typed(type="[@click=app.quit]"))}

    assert fields["type"].required
    assert fields["type"].default == ""


def test_several_values_are_told_apart_by_commas() -> None:
    request, _ = request_from(
        JOBS_CREATE, {}, {"type": "x", "payload": "{}", "required_capabilities": "gpu, tool:x"}
    )

    assert request is not None
    assert request.model_dump()["required_capabilities"] == ("gpu", "tool:x")


async def test_draining_an_agent_from_its_row(fleet: Fleet) -> None:
    app = console(directly(fleet.working))
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await choose(app, pilot, "a", "agents.drain")
        assert "atlas" in str(app.screen.query_one(".about", Static).content)

        app.screen.query_one(DoIt).focus()
        await pilot.press("enter")
        await until(
            lambda: bool(str(app.screen.query_one("#problem-reason", Static).content)), "the reason is asked for"
        )
        await pilot.press(*"disk", "space", *"swap")
        await until(
            lambda: not str(app.screen.query_one("#problem-reason", Static).content), "it is blamed no more"
        )
        app.screen.query_one(DoIt).focus()
        await pilot.press("enter")

        await until(lambda: len(app.screen_stack) == 1, "the form is gone")
        assert fleet.execute("select drain_reason from agents where name = 'atlas'") == [("disk swap",)]


async def test_enter_never_revokes_and_y_does(fleet: Fleet) -> None:
    app = console(directly(fleet.working))
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await choose(app, pilot, "a", "agents.revoke")
        app.screen.query_one("#field-reason", Input).value = "key leaked"
        app.screen.query_one(DoIt).focus()

        await pilot.press("enter", "enter")
        assert fleet.one("select count(*) from agents where name = 'atlas' and revoked_at is not null") == 0
        assert isinstance(app.screen, OperationForm)
        await pilot.press("y")

        await until(lambda: len(app.screen_stack) == 1, "the form is gone")
        assert fleet.one("select revocation_reason from agents where name = 'atlas'") == "key leaked"


async def test_a_secret_is_shown_once(fleet: Fleet) -> None:
    app = console(directly(fleet.working))
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await pilot.press("7")
        await until(lambda: bool(app.screen.query(OptionList)), "the menu of lists")
        await pilot.press("enter")
        await until(lambda: list_of(app).kind.name == "registration_tokens", "the list of tokens")
        await pilot.press("n")
        await until_on(app, OperationForm)
        app.screen.query_one(DoIt).focus()
        await pilot.press("enter")
        await until_on(app, SecretScreen)
        words = " ".join(str(part.content) for part in app.screen.query(Static))
        assert "art_key_" in words

        await pilot.press("escape")
        await until(lambda: len(list_of(app).table.source) == 1, "the token in the list")
        assert fleet.one("select count(*) from registration_tokens") == 1


async def test_a_read_only_profile_offers_nothing(fleet: Fleet) -> None:
    app = console(directly(fleet.working), read_only=True)
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)

        await pilot.press("a", "n")

        assert len(app.screen_stack) == 1
        assert "a" not in app.active_bindings or not app.active_bindings["a"].enabled


def test_the_job_list_offers_a_new_job() -> None:
    assert "jobs.create" in [action.operation.name for action in list_actions(JOBS_LIST, Role.OPERATOR)]


async def until_in_sight(app: ConsoleApp, field: FormField) -> None:
    """The cursor is in the field, and its label is on the screen."""

    def in_sight() -> bool:
        focused = app.focused
        return focused is not None and focused.id == f"field-{field.name}" and field.label in shown_text(app)

    await until(in_sight, f"{field.label} and its label")


async def test_every_field_of_a_long_form_is_seen_with_its_label_and_so_is_the_end(fleet: Fleet) -> None:
    app = console(directly(fleet.working))
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await pilot.press("3")
        await choose(app, pilot, "n", "jobs.create")

        for field in form_fields(JOBS_CREATE):
            await until_in_sight(app, field)
            assert "Enter: create" in shown_text(app)
            assert "Esc leave" in shown_text(app)
            await pilot.press("down")


async def test_a_form_whose_answer_is_lost_does_it_once(fleet: Fleet) -> None:
    app = console(over_a_dropped_line(fleet, JOBS_CREATE))
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await pilot.press("3")
        await choose(app, pilot, "n", "jobs.create")
        form = app.screen
        form.query_one("#field-type", Input).value = "once"
        form.query_one("#field-payload", Input).value = "{}"
        form.query_one(DoIt).focus()
        await pilot.press("enter")
        await until(lambda: "The line dropped." in shown_text(app), "what went wrong")
        assert "still done only once" in shown_text(app)
        await until(lambda: app.link.status.state is LinkState.UP, "up again")

        await pilot.press("enter")
        await until(lambda: app.screen is not form, "the answer")

        assert fleet.execute("select count(*) from jobs where type = 'once'") == [(1,)]


async def test_nobody_leaves_between_what_was_done_and_its_answer(fleet: Fleet) -> None:
    """At the second try it would be done again, and the secret of the first would be lost unseen."""
    async with open_direct(fleet.working, team="example", user=ADMIN) as repository:
        line = HeldLine(repository, REGISTRATION_TOKENS_MINT.name)
        app = console(lambda say: nullcontext(line), start="agents")
        async with app.run_test(size=(80, 24)) as pilot:
            await loaded(pilot)
            await pilot.press("7")
            await until_on(app, ListMenu)
            await pilot.press("enter")
            await until(lambda: list_of(app).kind.name == "registration_tokens", "the list of tokens")
            await pilot.press("n")
            await until_on(app, OperationForm)
            app.screen.query_one(DoIt).focus()
            await pilot.press("enter")
            await line.done.wait()

            await pilot.press("escape", "escape")

            assert isinstance(app.screen, OperationForm)
            assert "may be done already" in shown_text(app)
            line.let_through.set()
            await until_on(app, SecretScreen)
            assert "art_key_" in shown_text(app)
            assert fleet.one("select count(*) from registration_tokens") == 1
