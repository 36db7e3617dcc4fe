"""A list as a file: all that the filter finds, for its owner alone, and nothing a spreadsheet would calculate."""

import csv
import json
import stat
from pathlib import Path

import pytest

from agent_console.tui.dialogs.list_export import ListExport
from agent_console.tui.new_file import FOLDER_SET_BY, folder_words
from tests.support.fleet import Fleet
from tests.tui_console.stage import console, directly, list_of, loaded, press, row_ids, shown_text, until, until_on
from tests.tui_console.test_filtering import typed


def files_in(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


async def exported(fleet: Fleet, filter: str, *choose: str) -> list[str]:
    """Filter, export, and wait until it is told; the ids that were shown."""
    app = console(directly(fleet.working), start="jobs")
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await press(pilot, "slash")
        await typed(pilot, filter)
        await press(pilot, "enter")
        shown = row_ids(list_of(app))
        await pilot.press("E")
        await until_on(app, ListExport)
        await pilot.press(*choose, "enter")
        await until(lambda: "rows in" in shown_text(app), "it is written")
    return shown


async def test_lines_of_json_hold_what_the_filter_finds(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FOLDER_SET_BY, str(tmp_path))

    shown = await exported(fleet, "status:failed")

    (path,) = files_in(tmp_path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.suffix == ".jsonl"
    assert [json.loads(line)["id"] for line in path.read_text().splitlines()] == shown


def test_a_folder_is_told_in_words() -> None:
    assert folder_words(Path()) == "the current folder"
    assert folder_words(Path("exports")) == "exports"


async def test_csv_holds_every_page_and_no_formula(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FOLDER_SET_BY, str(tmp_path))
    fleet.add_jobs(450, type="=HYPERLINK()")

    await exported(fleet, "hyperlink", "down")
    await exported(fleet, "hyperlink", "down")

    first, second = files_in(tmp_path)
    with first.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 450
    assert {row["type"] for row in rows} == {"'=HYPERLINK()"}
    assert len({row["id"] for row in rows}) == 450
    assert second.read_text() == first.read_text(), "a second export is another file"
