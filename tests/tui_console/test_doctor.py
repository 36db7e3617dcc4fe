"""The doctor's screen: opened from anywhere, true while the connection comes and goes, and harmless."""

from contextlib import AsyncExitStack
from urllib.parse import urlsplit

from agent_console.domain.doctor_facts import ConfigFacts, LocalFacts, TerminalFacts
from agent_console.domain.findings import Verdict
from agent_console.tui.app import ConsoleApp
from agent_console.tui.link import LinkState, Opening
from agent_console.tui.panes.doctor_screen import DoctorScreen
from agent_console.tui.setup import Setup
from tests.attacks.hostile_strings import HOSTILE, dangers
from tests.support.fleet import Fleet
from tests.support.serving import serving
from tests.tui_console.stage import (
    ADMIN,
    console,
    directly,
    fixed_clock,
    loaded,
    press,
    shown_text,
    through,
    until,
    until_on,
)

TERMINAL = TerminalFacts(
    is_terminal=True, term="xterm-256color", colours=256, width=80, height=24, encoding="UTF-8"
)
HERE = LocalFacts(
    terminal=TERMINAL,
    python="3.11.7",
    program_version="1.0",
    config=ConfigFacts(file="config.toml", exists=False),
)


def console_with_doctor(opening: Opening, local: LocalFacts = HERE) -> ConsoleApp:
    return ConsoleApp(lambda: Setup(opening, "example", examine=lambda: local), clock=fixed_clock)


def doctor_of(app: ConsoleApp) -> DoctorScreen:
    assert isinstance(app.screen, DoctorScreen)
    return app.screen


def verdicts(app: ConsoleApp) -> dict[str, Verdict]:
    return {finding.what: finding.verdict for finding in doctor_of(app).found}


async def test_it_examines_everything_from_here_to_the_database(opening: Opening) -> None:
    """Also a terminal that calls itself something harmful."""
    term = f"{HOSTILE['csi clear screen'][:60]} [/]"
    local = HERE.model_copy(update={"terminal": TERMINAL.model_copy(update={"term": term})})
    app = console_with_doctor(opening, local)
    async with app.run_test(size=(100, 60)) as pilot:
        await loaded(pilot)

        await press(pilot, "3", "D")
        await until_on(app, DoctorScreen)
        await until(lambda: "schema" in verdicts(app), "the findings")

        found = verdicts(app)
        assert [found[what] for what in ("TERM", "schema", "autovacuum", "rights")] == [Verdict.FINE] * 4
        assert "✓ PostgreSQL" in shown_text(app)
        assert "latency" in shown_text(app)
        assert r"\x1b[" in shown_text(app)
        assert dangers(shown_text(app).replace("\n", "")) == []
        await press(pilot, "escape")
        assert len(app.screen_stack) == 1
        assert app.pane.pane_name == "jobs"


async def test_a_lost_connection_is_a_finding_and_so_is_its_return(fleet: Fleet) -> None:
    token = fleet.token(ADMIN)
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(AsyncExitStack())
        url = await first.enter_async_context(serving(fleet.working))
        app = console_with_doctor(through(url, token))
        pilot = await stack.enter_async_context(app.run_test(size=(100, 60)))
        await loaded(pilot)
        await press(pilot, "D")
        await until(lambda: isinstance(app.screen, DoctorScreen) and "schema" in verdicts(app), "the findings")

        await first.aclose()
        await until(lambda: verdicts(app).get("connection") is Verdict.WRONG, "that nobody answers")
        await until(lambda: f"No server answers at {url}" in shown_text(app), "what was tried")
        assert "✓ TERM" in shown_text(app)

        await stack.enter_async_context(serving(fleet.working, port=urlsplit(url).port or 0))
        await until(lambda: app.link.status.state is LinkState.UP, "up again")
        await until(lambda: verdicts(app).get("schema") is Verdict.FINE, "the findings again")


async def test_where_nobody_can_tell_of_the_machine_there_is_no_such_key(fleet: Fleet) -> None:
    app = console(directly(fleet.working))
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)

        await pilot.press("D", "C")
        await pilot.pause()

        assert len(app.screen_stack) == 1
        ids = {active.binding.id for active in app.screen.active_bindings.values() if active.enabled}
        assert not {"app.doctor", "app.profiles"} & ids
