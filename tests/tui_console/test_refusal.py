"""A configuration that can't work ends the console with its sentence; one that did is waited for."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from agent_console.domain.errors import ConfigError, ConsoleError, DatabaseUnavailable
from agent_console.repository.port import Repository
from agent_console.tui.app import ConsoleApp
from agent_console.tui.link import LinkState
from agent_console.tui.setup import Setup
from tests.support.fleet import Fleet
from tests.tui_console.stage import console, directly, until


async def ended_with(app: ConsoleApp) -> ConsoleError | None:
    async with app.run_test():
        await until(lambda: app.refusal is not None, "the console gave up")
    return app.refusal


async def test_settings_that_cannot_be_read() -> None:
    def prepare() -> Setup:
        raise ConfigError("The file is broken.", hint="Mend it.")

    app = ConsoleApp(prepare)

    refusal = await ended_with(app)

    assert str(refusal) == "The file is broken. Mend it."
    assert app.return_code == 2


async def test_a_person_nobody_knows(fleet: Fleet) -> None:
    refusal = await ended_with(console(directly(fleet.working, user="nobody@example.com")))

    assert isinstance(refusal, ConfigError)
    assert "nobody@example.com" in refusal.message


async def test_a_database_that_is_down_is_waited_for() -> None:
    @asynccontextmanager
    async def opening(say: object) -> AsyncIterator[Repository]:
        raise DatabaseUnavailable("Gone.")
        yield  # an async context manager has to be a generator

    app = console(opening)
    async with app.run_test():
        await until(lambda: app.link.status.state is LinkState.LOST, "the link says what is wrong")

        assert app.refusal is None
