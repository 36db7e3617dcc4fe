"""Open the console in a terminal that can show it; anywhere else print the plain status instead."""

import os
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

from agent_console.cli.ending import wait_for
from agent_console.cli.output import narrate
from agent_console.config import Settings, data_folder, load, state_folder

if TYPE_CHECKING:
    from agent_console.repository.port import Repository

Opening = Callable[[Callable[[str], None]], "AbstractAsyncContextManager[Repository]"]

# The demo has a database of its own; what the profile says about where to go and as whom is not for it.
DEMO_OPTIONS = ("theme", "slow", "read_only", "config")


def console(options: Mapping[str, object]) -> int:
    """The console on the profile the options ask for."""
    settings = load(options)

    def opening(say: Callable[[str], None]) -> "AbstractAsyncContextManager[Repository]":
        from agent_console.cli.opening import opened

        return opened(settings.profile, say)

    return open_console(settings, opening)


def demo(options: Mapping[str, object]) -> int:
    """The console on the example fleet."""
    settings = load({name: options.get(name) for name in DEMO_OPTIONS} | {"profile": "local"})

    def opening(say: Callable[[str], None]) -> "AbstractAsyncContextManager[Repository]":
        from agent_console.cli.demo import demo as opened_demo

        return opened_demo(data_folder() / "demo", say)

    return open_console(settings, opening, name="demo")


def can_show() -> bool:
    """Textual would send true colour to anything; a dumb terminal or a pipe gets text."""
    terminal = sys.stdin.isatty() and sys.stdout.isatty() and sys.stderr.isatty()
    return terminal and os.environ.get("TERM", "dumb") not in ("", "dumb", "unknown")


def open_console(settings: Settings, opening: Opening, *, name: str | None = None) -> int:
    if not can_show():
        wait_for(_plain(opening))
        narrate("This is the plain status: the console needs a terminal (and TERM set to something but dumb).")
        return 0
    # Textual reads these when it is imported, so they must be set before.
    if settings.slow:
        os.environ.setdefault("TEXTUAL_FPS", "10")
        os.environ.setdefault("TEXTUAL_ANIMATIONS", "none")
    if settings.theme == "mono":
        os.environ["NO_COLOR"] = "1"
    from agent_console.tui.app import ConsoleApp
    from agent_console.tui.terminal.restore import run_restoring

    app = ConsoleApp(
        opening,
        profile=name or settings.profile.label,
        production=settings.profile.production,
        colour=settings.profile.colour,
        read_only=settings.profile.read_only,
        theme_name=settings.theme,
        keymap=settings.keymap,
    )
    return run_restoring(app, state_folder(create=True), mouse=settings.mouse)


async def _plain(opening: Opening) -> None:
    from agent_console.cli.status import print_status

    def say(sentence: str) -> None:
        """Nobody is watching."""

    async with opening(say) as repository:
        await print_status(repository)
