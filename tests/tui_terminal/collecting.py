"""A driver that keeps what would have gone to the terminal, and a way to tell an app a story."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from textual import events
from textual.app import App
from textual.driver import Driver
from textual.geometry import Size
from textual.pilot import Pilot

Story: TypeAlias = Callable[[Pilot[object]], Awaitable[None]]


def collecting(written: list[str]) -> type[Driver]:
    """A driver class whose every write ends up in the list."""

    class Collecting(Driver):
        def write(self, data: str) -> None:
            written.append(data)

        def start_application_mode(self) -> None:
            self.process_message(events.Resize(Size(*(self._size or (80, 24))), Size(*(self._size or (80, 24)))))

        def disable_input(self) -> None:
            return

        def stop_application_mode(self) -> None:
            return

    return Collecting


async def settled(app: App[None]) -> None:
    """Return when everything asked for so far has been drawn."""
    drawn = asyncio.Event()
    app.call_after_refresh(drawn.set)
    await drawn.wait()


async def play(app: App[None], story: Story, size: tuple[int, int] = (80, 24)) -> None:
    """Run the app on its own driver, not headless, and end it after the story."""

    async def told(pilot: Pilot[object]) -> None:
        await pilot.pause()
        await settled(app)
        await story(pilot)
        app.exit()

    app.animation_level = "none"
    await app.run_async(size=size, auto_pilot=told)
