"""Open the console in a terminal that can show it; anywhere else print the plain status instead."""

import asyncio
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from time import monotonic
from typing import TYPE_CHECKING

from agent_console.cli.ending import tell
from agent_console.cli.reading_code import reading_code
from agent_console.config import data_folder, load, state_folder
from agent_console.config.glance import glance

if TYPE_CHECKING:
    from agent_console.cli.opening import Say
    from agent_console.config import Settings
    from agent_console.repository.port import Repository
    from agent_console.tui.setup import Setup

Opening = Callable[["Settings", "Say"], "AbstractAsyncContextManager[Repository]"]

# The demo has a database of its own; what the profile says about where to go and as whom is not for it.
DEMO_OPTIONS = ("theme", "slow", "read_only", "config")

DUTIES_BEGIN_SECONDS = 10.0
DUTIES_LOOK_SECONDS = 0.1


def console(options: Mapping[str, object]) -> int:
    """The console on the profile the options ask for."""

    def opening(settings: "Settings", say: "Say") -> "AbstractAsyncContextManager[Repository]":
        from agent_console.cli.opening import opened

        return opened(settings.profile, say, with_duties=True)

    return open_console(options, opening)


def demo(options: Mapping[str, object]) -> int:
    """The console on the example fleet."""
    from agent_console.cli.demo.server_process import ServerProcess

    folder = data_folder() / "demo"
    # It wakes while this process still reads its own code.
    awake = [ServerProcess(folder)]

    def opening(settings: "Settings", say: "Say") -> "AbstractAsyncContextManager[Repository]":
        from agent_console.cli.demo.opening import opened_demo

        return opened_demo(awake.pop() if awake else ServerProcess(folder), say)

    own = {name: options[name] for name in DEMO_OPTIONS if name in options}
    try:
        return open_console(own | {"profile": "local"}, opening, name="demo")
    finally:
        for nobody_came in awake:
            nobody_came.end()


def can_show() -> bool:
    """Textual would send true colour to anything; a dumb terminal or a pipe gets text."""
    terminal = sys.stdin.isatty() and sys.stdout.isatty() and sys.stderr.isatty()
    return terminal and os.environ.get("TERM", "dumb") not in ("", "dumb", "unknown")


def open_console(options: Mapping[str, object], opening: Opening, *, name: str | None = None) -> int:
    if not can_show():
        return _plain_status(options, opening)
    looks = glance(options)
    # Textual reads these when it is imported, so they must be set before.
    if looks.slow:
        os.environ.setdefault("TEXTUAL_FPS", "10")
        os.environ.setdefault("TEXTUAL_ANIMATIONS", "none")
    if looks.theme == "mono":
        os.environ["NO_COLOR"] = "1"
    with reading_code():
        from agent_console.tui.app import ConsoleApp
        from agent_console.tui.terminal.restore import run_restoring

    def prepare() -> "Setup":
        from agent_console.cli.places import setup_from

        return setup_from(options, opening, name=name)

    app = ConsoleApp(prepare, theme_name=looks.theme, bell=looks.bell)
    code = run_restoring(app, state_folder(create=True), mouse=looks.mouse)
    return code if app.refusal is None else tell(app.refusal)


def _plain_status(options: Mapping[str, object], opening: Opening) -> int:
    from agent_console.cli.output import narrate, silence
    from agent_console.cli.status import print_status

    settings = load(options)

    async def ask() -> None:
        async with opening(settings, silence) as repository:
            await _duties_begun(repository)
            await print_status(repository)

    asyncio.run(ask())
    narrate("This is the plain status: the console needs a terminal (and TERM set to something but dumb).")
    return 0


async def _duties_begun(repository: "Repository") -> None:
    """They begin a moment after we have opened; a status before that would warn of what we are about to mend."""
    from agent_console.domain.records import Nothing
    from agent_console.repository.operations.duties import DUTIES_LIST

    deadline = monotonic() + DUTIES_BEGIN_SECONDS
    while monotonic() < deadline:
        duties = await repository.call(DUTIES_LIST, Nothing())
        if not any(duty.late for duty in duties.items):
            return
        await asyncio.sleep(DUTIES_LOOK_SECONDS)
