"""The audit trail: followed, paused, one act of it, proved, damaged, taken away, and empty."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from textual.pilot import Pilot

from agent_console.database.example_conversations import OPERATOR
from agent_console.domain.audit import Fact
from agent_console.domain.ids import ApprovalId, JobId, RouteId, RunId, ThreadId
from agent_console.repository.operations.audit_trail import AUDIT_VERIFY
from agent_console.tui.dialogs import proof_dialog
from agent_console.tui.dialogs.export_dialog import ExportDialog
from agent_console.tui.new_file import FOLDER_SET_BY
from tests.snapshots.conftest import NARROW, USUAL, WIDE, LooksRight, Sizes, SnapCompare
from tests.support.clusters import TemplateDatabase
from tests.support.fleet import AT, Fleet
from tests.support.trail import seal
from tests.tui_console.audit_stage import Told, found_id, held_after, seal_and_tell, sealed_at, tell
from tests.tui_console.stage import ADMIN, console, directly, loaded, press, shown_text, until, until_on

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


def tell_the_story(fleet: Fleet) -> None:
    """What people, agents and the system did, the last two not sealed yet."""
    thread = ThreadId.of(found_id(fleet, ThreadId, "select id from threads order by id limit 1"))
    run = RunId.of(found_id(fleet, RunId, "select id from runs order by id limit 1"))
    route = RouteId.of(found_id(fleet, RouteId, "select id from a2a_routes order by id limit 1"))
    approval = ApprovalId.of(found_id(fleet, ApprovalId, "select id from approvals order by id limit 1"))
    job = JobId.of(found_id(fleet, JobId, "select id from jobs where type = 'deploy' order by id limit 1"))
    atlas, gantry = str(fleet.agent_id("atlas")), str(fleet.agent_id("gantry"))
    pair: dict[str, Fact] = {"from_agent_id": atlas, "to_agent_id": gantry}
    tell(
        fleet,
        Told("a2a.route.create", "route", str(route), 90_000, person=ADMIN, reason="first policy", facts=pair),
        Told("thread.create", "thread", str(thread), 4_000, person=OPERATOR, thread=thread),
        Told("message.create", "message", "msg_1", 3_990, person=OPERATOR, thread=thread, facts={"recipients": 1}),
        Told("run.create", "run", str(run), 3_980, person=OPERATOR, thread=thread, run=run),
        Told("run.start", "run", str(run), 3_970, agent="atlas", thread=thread, run=run, facts={"attempt": 1}),
        Told(
            "a2a.delegate.blocked", "agent", gantry, 2_000, agent="atlas", decision="block", thread=thread,
            reason="no route from atlas to gantry", facts=pair | {"rule": "no_route"},
        ),
        Told(
            "a2a.delegate.allowed", "agent", gantry, 1_500, agent="atlas", decision="allow", thread=thread,
            facts=pair | {"rule": "route", "policy_version": 1},
        ),
        Told("approval.expire", "approval", str(approval), 900, decision="block", reason="nobody decided in time"),
        Told("agent.drain", "agent", gantry, 600, person=ADMIN, reason="disk swap", facts={"jobs": 2}),
        Told("job.cancel", "job", str(job), 300, person=ADMIN, reason="wrong month", facts={"from": "queued"}),
        Told("auth.login.failed", "address", "10.0.0.9", 200),
        Told("job.retry_many", "job", str(job), 60, person=OPERATOR, facts={"done": 42, "refused": 0}),
    )  # fmt: skip
    seal(fleet)
    tell(
        fleet,
        Told("job.create", "job", str(job), 2, agent="atlas"),
        Told("agent.resume", "agent", gantry, 1, ADMIN),
    )
    sealed_at(fleet, AT - timedelta(seconds=4))


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
        await until_on(app, ExportDialog)
        await pilot.press("down", "enter")
        await until(lambda: "✓ 2 acts" in shown_text(app), "the file")

    assert snap_compare(
        console(directly(still_trail.working), start="audit"), terminal_size=USUAL, run_before=look
    )
