"""The audit trail: followed, paused, one act of it, proved, damaged, taken away, and empty."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from textual.pilot import Pilot

from agent_console.repository.operations.audit_trail import AUDIT_VERIFY
from agent_console.tui.dialogs import proof_dialog
from agent_console.tui.dialogs.trail_export import TrailExport
from agent_console.tui.new_file import FOLDER_SET_BY
from tests.snapshots.conftest import NARROW, USUAL, WIDE, LooksRight, Sizes, SnapCompare
from tests.support.clusters import TemplateDatabase
from tests.support.fleet import AT, Fleet
from tests.support.told_trail import tell_the_story
from tests.tui_console.audit_stage import Told, held_after, seal_and_tell, sealed_at, tell
from tests.tui_console.stage import console, directly, loaded, press, shown_text, until, until_on

# The hash of a seal holds the number of its transaction; in a picture it has to be the same every time.
SEALS_FOR_THE_PICTURE = (
    "set session_replication_role = replica",
    "update audit_seals set hash = sha256(position::text::bytea)",
    "reset session_replication_role",
)
TAMPER = (
    "set session_replication_role = replica",
    "update audit_log set reason = 'never happened' where action = 'agent.drain'",
    "reset session_replication_role",
)


@pytest.fixture(scope="module")
def still_trail(templates: TemplateDatabase, story_template: str) -> Iterator[Fleet]:
    """The fixed story with a trail, shared by every picture that does not change it."""
    name = "still_trail"
    templates.clone(story_template, name)
    with Fleet(templates.cluster.dsn(name)) as fleet:
        tell_the_story(fleet)
        for statement in SEALS_FOR_THE_PICTURE:
            fleet.execute(statement)
        yield fleet
    templates.drop(name)


@pytest.mark.sizes(NARROW, USUAL, WIDE)
def test_the_trail_followed(looks_right: LooksRight, still_trail: Fleet, size: Sizes) -> None:
    assert looks_right(console(directly(still_trail.working), start="audit"), size)


def test_one_act(looks_right: LooksRight, still_trail: Fleet) -> None:
    keys = ("f", "down", "enter")

    assert looks_right(console(directly(still_trail.working), start="audit"), USUAL, *keys)


def test_nothing_was_done_yet(looks_right: LooksRight, still_fleet: Fleet) -> None:
    assert looks_right(console(directly(still_fleet.working), start="audit"), USUAL)


def test_paused_while_others_go_on(snap_compare: SnapCompare, story: Fleet) -> None:
    tell_the_story(story)

    async def look(pilot: Pilot[None]) -> None:
        app = await loaded(pilot)
        await press(pilot, "down", "down", "down")
        tell(story, *(Told("job.create", "job", f"job_{number}", 0, agent="atlas") for number in range(42)))
        seal_and_tell(story)
        sealed_at(story, AT)
        await until(lambda: "‖ paused, 42 new" in shown_text(app), "how many came in")
        await until(lambda: "sealed to 56, 0s ago" in shown_text(app), "the chain as it is now")
        await until(lambda: "◌" not in shown_text(app), "what is sealed now")

    assert snap_compare(console(directly(story.working), start="audit"), terminal_size=USUAL, run_before=look)


def test_while_it_is_proved(snap_compare: SnapCompare, story: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proof_dialog, "AT_ONCE", 3)
    tell_the_story(story)
    opening = held_after(directly(story.working), AUDIT_VERIFY.name, 2)

    async def look(pilot: Pilot[None]) -> None:
        app = await loaded(pilot)
        await pilot.press("V")
        await until(lambda: "6 of 12 acts" in shown_text(app), "two parts")

    assert snap_compare(console(opening, start="audit"), terminal_size=USUAL, run_before=look)


def test_a_damaged_trail(snap_compare: SnapCompare, story: Fleet) -> None:
    tell_the_story(story)
    for statement in TAMPER:
        story.execute(statement)

    async def look(pilot: Pilot[None]) -> None:
        app = await loaded(pilot)
        await pilot.press("V")
        await until(lambda: "✗ Damaged (changed)" in shown_text(app), "the damage")

    assert snap_compare(console(directly(story.working), start="audit"), terminal_size=USUAL, run_before=look)


def test_an_export(
    snap_compare: SnapCompare, still_trail: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(FOLDER_SET_BY, raising=False)

    async def look(pilot: Pilot[None]) -> None:
        app = await loaded(pilot)
        await press(pilot, "f")
        await pilot.press("E")
        await until_on(app, TrailExport)
        await pilot.press("down", "enter")
        await until(lambda: "✓ 2 acts" in shown_text(app), "the file")

    assert snap_compare(
        console(directly(still_trail.working), start="audit"), terminal_size=USUAL, run_before=look
    )
