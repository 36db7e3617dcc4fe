"""The policy: as a matrix and a list, with few agents and many, edited, explained, remembered, applied."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from agent_console.tui.dialogs.operation_form import DoIt
from tests.snapshots.conftest import NARROW, USUAL, WIDE, LooksRight, Size, Sizes, SnapCompare, dimensions
from tests.support.clusters import TemplateDatabase
from tests.support.fleet import Fleet
from tests.support.many_agents import add_agents
from tests.support.recorded_requests import record_requests
from tests.tui_console.route_stage import on_pair, settle, shows
from tests.tui_console.stage import console, directly, loaded, press, until
from tests.tui_console.test_routes_editor import CHANGED_BY_ANOTHER
from tests.tui_console.test_routes_files import FILE

CROWD = 190
ROUTES_AMONG_THE_CROWD = """
    with crowd as materialized (
        select team_id, id, substr(name, 2)::int as n from agents where name ~ '^n[0-9]+$'),
    pairs as (
        select f.team_id, f.id as of, t.id as "to", f.n + t.n as sum,
               row_number() over (order by f.n, t.n) as place
          from crowd f join crowd t on t.id <> f.id
         where (f.n * 7 + t.n * 3) %% 11 = 0)
    insert into a2a_routes (team_id, id, from_agent_id, to_agent_id, policy)
    select team_id, ('01990000-0000-7000-a000-' || lpad(to_hex(place), 12, '0'))::uuid, of, "to",
           (array['allowed', 'blocked', 'requires_human_approval'])[1 + sum %% 3]
      from pairs
"""


@pytest.fixture(scope="session")
def still_policy(templates: TemplateDatabase, story_template: str) -> Iterator[Fleet]:
    """The story with requests on record, shared by every picture that does not change it."""
    templates.clone(story_template, "still_policy")
    with Fleet(templates.cluster.dsn("still_policy")) as fleet:
        record_requests(fleet, "dispatch", "ember", 42, action="a2a.delegate.allowed")
        record_requests(fleet, "atlas", "fathom", 8, action="a2a.delegate.allowed")
        yield fleet
    templates.drop("still_policy")


@pytest.fixture(scope="session")
def still_crowd(templates: TemplateDatabase, story_template: str) -> Iterator[Fleet]:
    """Two hundred agents, and routes among many of them."""
    templates.clone(story_template, "still_crowd")
    with Fleet(templates.cluster.dsn("still_crowd")) as fleet:
        add_agents(fleet, CROWD)
        fleet.execute(ROUTES_AMONG_THE_CROWD)
        yield fleet
    templates.drop("still_crowd")


@pytest.mark.sizes(NARROW, USUAL, WIDE)
def test_the_matrix(snap_compare: SnapCompare, still_policy: Fleet, size: Sizes) -> None:
    async def story(pilot: Pilot[None]) -> None:
        app = await on_pair(pilot, still_policy, "dispatch", "gantry")
        await shows(app, "nothing is deployed without")

    assert snap_compare(
        console(directly(still_policy.working), start="routes"), terminal_size=size, run_before=story
    )


@pytest.mark.parametrize("page", [USUAL, WIDE], ids=dimensions)
def test_two_hundred_agents(snap_compare: SnapCompare, still_crowd: Fleet, page: Size) -> None:
    async def story(pilot: Pilot[None]) -> None:
        await loaded(pilot)
        await settle(pilot, "pagedown", "greater_than_sign", "greater_than_sign", "down", "right")

    assert snap_compare(
        console(directly(still_crowd.working), start="routes"), terminal_size=page, run_before=story
    )


def test_the_list(looks_right: LooksRight, still_policy: Fleet) -> None:
    assert looks_right(console(directly(still_policy.working), start="routes"), USUAL, "m", "down")


def test_nobody(looks_right: LooksRight, fleet: Fleet) -> None:
    fleet.execute("update agents set deleted_at = now(), revoked_at = now(), revocation_reason = 'gone'")

    assert looks_right(console(directly(fleet.working), start="routes"), USUAL)


@pytest.mark.sizes(NARROW, USUAL)
def test_the_editor_with_its_replay(snap_compare: SnapCompare, still_policy: Fleet, size: Sizes) -> None:
    async def story(pilot: Pilot[None]) -> None:
        app = await on_pair(pilot, still_policy, "dispatch", "ember")
        await press(pilot, "e", "right", "right")
        await shows(app, "this would change")

    assert snap_compare(
        console(directly(still_policy.working), start="routes"), terminal_size=size, run_before=story
    )


def test_a_route_that_changed_meanwhile(snap_compare: SnapCompare, story: Fleet) -> None:
    async def edited(pilot: Pilot[None]) -> None:
        app = await on_pair(pilot, story, "dispatch", "gantry")
        await press(pilot, "e", "right")
        app.screen.query_one("#reason", Input).value = "no more"
        story.execute(CHANGED_BY_ANOTHER)
        app.screen.query(DoIt).first().focus()
        await press(pilot, "y")
        await shows(app, "It was changed meanwhile", "go on from the new version")

    assert snap_compare(console(directly(story.working), start="routes"), terminal_size=USUAL, run_before=edited)


@pytest.mark.parametrize("key", ["x", "h"], ids=["explained", "history"])
def test_what_is_told_of_a_pair(snap_compare: SnapCompare, still_policy: Fleet, key: str) -> None:
    async def story(pilot: Pilot[None]) -> None:
        await on_pair(pilot, still_policy, "dispatch", "gantry")
        await press(pilot, key)

    assert snap_compare(
        console(directly(still_policy.working), start="routes"), terminal_size=USUAL, run_before=story
    )


def test_the_plan_of_a_file(
    snap_compare: SnapCompare, still_policy: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("policy.yaml").write_text(FILE)

    async def story(pilot: Pilot[None]) -> None:
        app = await loaded(pilot)
        await press(pilot, "Y")
        app.screen.query_one("#path", Input).value = "policy.yaml"
        see, apply = app.screen.query(DoIt)
        see.focus()
        await press(pilot, "enter")
        await until(lambda: apply.display, "the plan")
        apply.focus()
        await pilot.pause()

    assert snap_compare(
        console(directly(still_policy.working), start="routes"), terminal_size=USUAL, run_before=story
    )
