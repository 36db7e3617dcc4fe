"""The policy as a file: written for its owner alone, and applied as it was planned."""

from pathlib import Path

import pytest
from textual.widgets import Checkbox, Input

from agent_console.domain.errors import Invalid
from agent_console.tui.dialogs.operation_form import DoIt
from agent_console.tui.new_file import FOLDER_SET_BY
from agent_console.tui.panes.routes.apply import ApplyScreen
from agent_console.tui.panes.routes.files import read_policy_file, write_policy
from tests.support.fleet import AT, Fleet
from tests.tui_console.route_stage import shows
from tests.tui_console.stage import console, loaded, press, shown_text, through_server, until, until_on

FILE = """format: 1
routes:
  - from: dispatch
    to: ember
    policy: blocked
  - from: iris
    to: atlas
    policy: allowed
    notes: counts together
"""


@pytest.fixture
def exports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the console puts its files."""
    monkeypatch.setenv(FOLDER_SET_BY, str(tmp_path))
    return tmp_path


async def test_an_export_is_for_its_owner_alone_and_overwrites_nothing(story: Fleet, exports: Path) -> None:
    app = console(through_server(story), start="routes")
    async with app.run_test(size=(200, 60)) as pilot:
        await loaded(pilot)
        await press(pilot, "E")
        await shows(app, f"{exports}/policy-20990301T030000Z.yaml", "routes         9")
        await press(pilot, "escape", "E")
        await shows(app, f"{exports}/policy-20990301T030000Z-2.yaml")

        first, second = exports / "policy-20990301T030000Z.yaml", exports / "policy-20990301T030000Z-2.yaml"
        assert {path.stat().st_mode & 0o777 for path in (first, second)} == {0o600}
        assert "from: dispatch" in read_policy_file(first)
        assert read_policy_file(first) == read_policy_file(second)


async def test_a_file_is_applied_as_it_was_planned_or_not_at_all(story: Fleet, tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(FILE.replace("iris", "nobody"))
    app = console(through_server(story), start="routes")
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await press(pilot, "Y")
        await until_on(app, ApplyScreen)
        app.screen.query_one("#path", Input).value = str(path)
        see, apply = app.screen.query(DoIt)
        see.focus()
        await press(pilot, "enter")
        await shows(app, "1 thing is wrong with it", "line 6", 'there is no agent "nobody"')
        assert not apply.display
        await press(pilot, "3")
        await shows(app, "What you typed is not saved.")

        path.write_text(FILE)
        await press(pilot, "enter")
        await shows(app, "1 to add, 1 to change, 8 to remove; 0 stay as they are", "none → counts together")
        assert "[x] remove the routes" in shown_text(app)
        app.screen.query_one(Checkbox).value = False
        await shows(app, "[ ] remove the routes")
        await until(lambda: not apply.display and see.has_focus, "the plan no longer counts")
        await press(pilot, "enter")
        await shows(app, "1 to add, 1 to change, 0 to remove; 8 stay as they are")
        app.screen.query_one("#reason", Input).value = "reviewed"
        story.execute("update a2a_routes set version = version + 1 where policy = 'blocked'")
        await until(lambda: apply.has_focus, "the line that says y")
        await press(pilot, "y")
        await shows(app, "The policy was changed after the plan was made.")
        assert story.one("select count(*) from a2a_routes") == 9

        await press(pilot, "enter")
        await until(lambda: apply.has_focus, "a new plan, and the line that says y")
        path.write_text("format: 1\nroutes: []\n")
        await press(pilot, "enter")
        assert story.one("select count(*) from a2a_routes") == 9, "only a y does it"
        await press(pilot, "up", "y")
        await until(lambda: not app.stacked, "it is done")
        assert story.one("select count(*) from a2a_routes") == 10
        assert story.one("select count(*) from a2a_route_versions where reason = 'reviewed'") == 2


def test_what_is_no_policy_file_is_refused_with_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes(b"format: 1\nroutes: [\xff]")

    with pytest.raises(Invalid, match="No such file"):
        read_policy_file(tmp_path / "missing")
    with pytest.raises(Invalid, match="is no file"):
        read_policy_file(tmp_path)
    with pytest.raises(Invalid, match="Line 2"):
        read_policy_file(tmp_path / "latin")
    with pytest.raises(Invalid, match="can't be written"):
        write_policy(tmp_path / "missing", "x", AT)
