"""The doctor, the choice of a profile, where one is after it, and a job's output narrowed to what is bad."""

from collections.abc import Awaitable, Callable

import pytest
from textual.pilot import Pilot

from agent_console.domain.doctor_facts import FarFacts, LocalFacts
from agent_console.domain.ids import JobEventId
from agent_console.tui.app import ConsoleApp
from agent_console.tui.dialogs.profiles import ProfilesDialog
from agent_console.tui.link import Link, Opening
from agent_console.tui.panes.doctor_screen import DoctorScreen
from agent_console.tui.places import KnownPlace, PlaceChosen
from agent_console.tui.setup import Setup
from agent_console.tui.wanted import ScreenWanted
from tests.domain.test_doctor import DATABASE, FAR, LOCAL, TERMINAL, with_first_duty
from tests.snapshots.conftest import NARROW, USUAL, WIDE, Sizes, SnapCompare
from tests.support.fleet import AT, Fleet
from tests.tui_console.stage import (
    app_of,
    directly,
    fixed_clock,
    has_detail,
    list_of,
    loaded,
    press,
    until,
    until_on,
)

IN_TROUBLE = LOCAL.model_copy(
    update={
        "terminal": TERMINAL.model_copy(update={"over_ssh": True, "within": "tmux", "height": 22}),
        "config": LOCAL.config.model_copy(update={"mode": 0o644}),
    }
)
BADLY = with_first_duty(late=True, done_seconds_ago=600.0).model_copy(
    update={
        "round_trips": (0.2, 0.31, 0.9),
        "skew_seconds": -42.0,
        "database": DATABASE.model_copy(update={"autovacuum": False, "oldest_transaction_seconds": 4000.0}),
    }
)


async def silent(link: Link) -> FarFacts:
    return FarFacts(problem="No server answers at https://console.example.com.", hint="See whether it runs.")


async def fine(link: Link) -> FarFacts:
    return FAR


async def badly(link: Link) -> FarFacts:
    return BADLY


def examined(
    local: LocalFacts, ask: Callable[[Link], Awaitable[FarFacts]]
) -> Callable[[Pilot[None]], Awaitable[None]]:
    async def story(pilot: Pilot[None]) -> None:
        app = await loaded(pilot)
        assert app._around is not None
        app.post_message(ScreenWanted(DoctorScreen(app._around, lambda: local, ask)))
        await until_on(app, DoctorScreen)
        await until(lambda: has_detail(app), "the findings")
        await pilot.pause()

    return story


def console_at(fleet: Fleet) -> ConsoleApp:
    return ConsoleApp(lambda: Setup(directly(fleet.working), "prod-eu", start="agents"), clock=fixed_clock)


@pytest.mark.sizes(NARROW, USUAL, WIDE)
def test_all_is_fine(snap_compare: SnapCompare, still_fleet: Fleet, size: Sizes) -> None:
    assert snap_compare(console_at(still_fleet), terminal_size=size, run_before=examined(LOCAL, fine))


def test_in_trouble(snap_compare: SnapCompare, still_fleet: Fleet) -> None:
    assert snap_compare(console_at(still_fleet), terminal_size=USUAL, run_before=examined(IN_TROUBLE, badly))


def test_nobody_answers(snap_compare: SnapCompare, still_fleet: Fleet) -> None:
    assert snap_compare(console_at(still_fleet), terminal_size=USUAL, run_before=examined(LOCAL, silent))


class Three:
    """Places as a configuration file would give them, all of them on one database."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening

    def listed(self) -> tuple[KnownPlace, ...]:
        problem = "Profile lab does not say where to connect."
        return (
            KnownPlace("staging", "direct", "PostgreSQL at db.example.com/agents", look=self._opening),
            KnownPlace("prod-eu", "server", "https://console.example.com", production=True, look=self._opening),
            KnownPlace("reports", "direct", "PostgreSQL at replica.example.com/agents", read_only=True),
            KnownPlace("lab", "", problem=problem),
        )

    def setup_of(self, chosen: PlaceChosen) -> Setup:
        return Setup(self._opening, chosen.name, production=chosen.name == "prod-eu", start="agents", places=self)


def console_among(fleet: Fleet) -> ConsoleApp:
    places = Three(directly(fleet.working))
    return ConsoleApp(lambda: places.setup_of(PlaceChosen("staging")), clock=fixed_clock)


async def open_dialog(pilot: Pilot[None]) -> None:
    app = await loaded(pilot)
    await pilot.press("C")
    await until_on(app, ProfilesDialog)
    await until(lambda: isinstance(app.screen, ProfilesDialog) and app.screen.has_looked, "the answers")
    await pilot.pause()


async def go_to_production(pilot: Pilot[None]) -> None:
    await open_dialog(pilot)
    app = app_of(pilot)
    await pilot.press("down", "enter")
    await until(lambda: app.has_panes and app.header_facts.profile == "prod-eu", "the other place")
    await loaded(pilot)


@pytest.mark.sizes(NARROW, USUAL)
def test_the_choice_of_a_profile(snap_compare: SnapCompare, still_fleet: Fleet, size: Sizes) -> None:
    assert snap_compare(console_among(still_fleet), terminal_size=size, run_before=open_dialog)


def test_production_after_a_switch(snap_compare: SnapCompare, still_fleet: Fleet) -> None:
    assert snap_compare(console_among(still_fleet), terminal_size=USUAL, run_before=go_to_production)


def told(fleet: Fleet) -> Fleet:
    """The running job at the top has something to say."""
    said = {"info": "scanned 1,200 of 2,700 files", "warn": "3 files can't be read", "error": "the disk is full"}
    for level, message in said.items():
        fleet.execute(
            "insert into job_events (team_id, id, job_id, level, message, created_at)"
            " values (%s, %s, %s, %s, %s, %s)",
            *(fleet.team_id(), JobEventId.new(), fleet.first_job("running"), level, message, AT),
        )
    return fleet


def job_of(fleet: Fleet) -> Callable[[Pilot[None]], Awaitable[None]]:
    async def narrowed(pilot: Pilot[None]) -> None:
        app = await loaded(pilot)
        await press(pilot, "3")
        assert list_of(app).table.move_to(str(fleet.first_job("running")))
        await press(pilot, "enter", "f", "p")

    return narrowed


def test_output_of_a_job_narrowed_and_held_still(snap_compare: SnapCompare, fleet: Fleet) -> None:
    told(fleet)

    assert snap_compare(console_at(fleet), terminal_size=USUAL, run_before=job_of(fleet))
