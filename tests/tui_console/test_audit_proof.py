"""Proving the trail and taking it away, from the console: watched, stopped, and honest about the end."""

import asyncio
import json
import threading
from pathlib import Path

import pytest
from textual.pilot import Pilot

from agent_console.repository.operations.audit_trail import AUDIT_EXPORT, AUDIT_SEAL_STATUS, AUDIT_VERIFY
from agent_console.tui.app import ConsoleApp
from agent_console.tui.dialogs import proof_dialog, trail_export
from agent_console.tui.dialogs.proof_dialog import ProofDialog
from agent_console.tui.dialogs.trail_export import TrailExport
from agent_console.tui.link import Opening
from agent_console.tui.new_file import FOLDER_SET_BY, NewFile, to_its_end, unused_name
from agent_console.tui.panes.audit.live import CHAIN
from agent_console.tui.panes.pane import is_waiting
from tests.support.fleet import Fleet
from tests.support.trail import act, seal
from tests.tui_console.audit_stage import Held, audit_of, fill, held_after, seal_and_tell
from tests.tui_console.stage import PATIENCE, console, directly, loaded, shown_text, until, until_on

TAMPER = """
    set session_replication_role = replica;
    update audit_log set reason = 'never happened' where resource_id = 'job_3';
    reset session_replication_role
"""


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def shown(app: ConsoleApp, words: str) -> None:
    await until(lambda: words in shown_text(app), words)


async def close(app: ConsoleApp, pilot: Pilot[None]) -> None:
    await pilot.press("escape")
    await until(lambda: len(app.screen_stack) == 1, "the list again")


async def test_a_trail_is_proved_and_the_first_damage_is_named(
    opening: Opening, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proof_dialog, "AT_ONCE", 2)
    fill(fleet, 5)
    seal(fleet)
    app = console(opening, start="audit")
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await pilot.press("V")
        await shown(app, "✓ Intact: nobody changed the 5 sealed acts.")
        assert "100% ████████  5 of 5 acts" in shown_text(app)
        await close(app, pilot)
        await shown(app, "✓ Verified to 5")

        for statement in TAMPER.split(";"):
            fleet.execute(statement)
        await pilot.press("V")
        await shown(app, "✗ Damaged (changed) at position 3")
        await shown(app, "The 2 acts before it hold.")
        await close(app, pilot)
        await shown(app, "✗ Damaged at 3 (changed)")


async def test_a_proof_can_be_stopped_and_says_how_far_it_came(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proof_dialog, "AT_ONCE", 2)
    fill(fleet, 9)
    seal(fleet)
    sides: list[Held] = []
    app = console(held_after(directly(fleet.working), AUDIT_VERIFY.name, 2, sides), start="audit")
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await pilot.press("V")
        await shown(app, "44% ████░░░░  4 of 9 acts")

        await pilot.press("escape")
        await shown(app, "Stopping after this part")
        sides[0].let_go.set()
        await shown(app, "Stopped. The chain holds up to 6.")
        await close(app, pilot)
        await shown(app, "✓ Verified to 6")


async def test_what_was_proved_stays_so_when_older_news_of_the_chain_arrive(fleet: Fleet) -> None:
    fill(fleet, 5)
    seal(fleet)
    sides: list[Held] = []
    app = console(held_after(directly(fleet.working), AUDIT_SEAL_STATUS.name, 1, sides), start="audit")
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await shown(app, "sealed to 5")
        act(fleet)
        seal_and_tell(fleet)
        await until(lambda: is_waiting(audit_of(app), CHAIN), "the chain is asked about")

        await pilot.press("V")
        await shown(app, "✓ Intact")
        await close(app, pilot)
        await shown(app, "✓ Verified to 6")
        sides[0].let_go.set()

        await shown(app, "sealed to 6")
        assert "✓ Verified to 6" in shown_text(app)


async def test_what_only_administrators_may_prove_is_not_offered_to_others(fleet: Fleet) -> None:
    fleet.execute("update users set role = 'viewer' where email = 'ana@example.com'")
    act(fleet)
    app = console(directly(fleet.working), start="audit")
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        assert "V Verify" not in shown_text(app)

        await pilot.press("V", "E")
        await until_on(app, TrailExport)
        assert not any(isinstance(screen, ProofDialog) for screen in app.screen_stack)


async def test_an_export_is_a_new_file_for_one_pair_of_eyes(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # To where it was started: a longer name would be broken wherever the line ends.
    monkeypatch.delenv(FOLDER_SET_BY, raising=False)
    monkeypatch.chdir(tmp_path)
    made = [act(fleet, decision="block", reason="=1+1"), act(fleet)]
    seal(fleet)
    app = console(directly(fleet.working), start="audit")
    async with app.run_test(size=(200, 60)) as pilot:
        await loaded(pilot)
        await pilot.press("E")
        await until_on(app, TrailExport)
        await pilot.press("enter")
        await shown(app, "✓ 2 acts, up to position 2")
        await close(app, pilot)
        first = tmp_path / "audit-20990301T030000Z.jsonl"
        assert [json.loads(line)["id"] for line in first.read_text().splitlines()] == [str(one) for one in made]
        assert first.stat().st_mode & 0o777 == 0o600

        await pilot.press("f")
        await shown(app, "1 blocked")
        for place, name in enumerate(("audit-20990301T030000Z-2.jsonl", "audit-20990301T030000Z.csv")):
            await pilot.press("E")
            await until_on(app, TrailExport)
            await pilot.press(*["down"] * place, "enter")
            await shown(app, "✓ 1 act,")
            # A line below, which may be painted a moment later.
            await shown(app, name)
            await close(app, pilot)

    assert names_in(tmp_path) == [
        "audit-20990301T030000Z-2.jsonl", "audit-20990301T030000Z.csv", "audit-20990301T030000Z.jsonl",
    ]  # fmt: skip
    assert len(first.read_text().splitlines()) == 2, "it was not written over"
    assert '"\'=1+1"' in (tmp_path / "audit-20990301T030000Z.csv").read_text()


async def test_a_stopped_export_leaves_nothing(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FOLDER_SET_BY, str(tmp_path))
    monkeypatch.setattr(trail_export, "AT_ONCE", 2)
    fill(fleet, 9)
    seal(fleet)
    sides: list[Held] = []
    app = console(held_after(directly(fleet.working), AUDIT_EXPORT.name, 2, sides), start="audit")
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await pilot.press("E")
        await until_on(app, TrailExport)
        await pilot.press("enter")
        await shown(app, "44% ████░░░░  4 acts written")
        assert names_in(tmp_path) == ["audit-20990301T030000Z.jsonl.part"]

        await pilot.press("escape")
        sides[0].let_go.set()
        await shown(app, "What was written so far has been removed.")
        await close(app, pilot)
        assert names_in(tmp_path) == []

        monkeypatch.setenv(FOLDER_SET_BY, str(tmp_path / "nowhere"))
        await pilot.press("E")
        await until_on(app, TrailExport)
        await pilot.press("enter")
        await shown(app, "can't be written to")
        assert "Nothing was kept." in shown_text(app)


def test_a_name_that_somebody_took_meanwhile_is_not_written_over(tmp_path: Path) -> None:
    path = unused_name(tmp_path, "audit", "csv")
    file = NewFile.begin(path)
    file.write("ours")
    path.write_text("theirs")

    with pytest.raises(FileExistsError):
        file.keep()
    file.drop()

    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("audit.csv", "theirs")]
    assert unused_name(tmp_path, "audit", "csv").name == "audit-2.csv"


def test_no_empty_file_stays_where_what_was_written_is_gone(tmp_path: Path) -> None:
    file = NewFile.begin(unused_name(tmp_path, "audit", "csv"))
    file.write("ours")
    (tmp_path / "audit.csv.part").unlink()

    with pytest.raises(FileNotFoundError):
        file.keep()

    assert list(tmp_path.iterdir()) == []


async def test_who_leaves_while_a_file_is_begun_leaves_no_part_of_it(tmp_path: Path) -> None:
    path, may_go_on = unused_name(tmp_path, "audit", "csv"), threading.Event()

    def begin() -> NewFile:
        assert may_go_on.wait(PATIENCE)
        return NewFile.begin(path)

    beginning = asyncio.create_task(to_its_end(begin, undo=NewFile.drop))
    await asyncio.sleep(0)
    beginning.cancel()
    await asyncio.sleep(0)
    may_go_on.set()

    with pytest.raises(asyncio.CancelledError):
        await beginning
    assert names_in(tmp_path) == []
