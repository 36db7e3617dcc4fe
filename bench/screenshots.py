"""The pictures of the README, made from the example fleet by the real console on a real database.

    python -m bench.screenshots [folder]

The same pictures in every run: the clock stands still and the fleet has fixed ids. SVG always; PNG where
rsvg-convert is at hand (librsvg2-bin; install fonts-firacode with it, or frames break).
"""

import argparse
import asyncio
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.support import example_fleet, example_story
from tests.support.fleet import Fleet
from tests.support.told_course import course
from tests.support.told_trail import tell_the_story
from tests.tui_console.audit_stage import sealed_at
from textual.pilot import Pilot

from agent_console.database.embedded import embedded_postgres
from agent_console.database.migrate import migrate
from agent_console.database.roles import APP, with_role
from agent_console.repository.postgres.duties.rounds import duties_done
from agent_console.repository.postgres.repository import Backend, open_direct
from agent_console.tui.app import ConsoleApp
from agent_console.tui.panes.overview.pane import OverviewPane
from agent_console.tui.setup import Setup
from agent_console.tui.widgets.header import HeaderBar

AT = datetime(2099, 3, 1, 3, 0, tzinfo=UTC)
"""In the future, so that the database's own clock never counts an agent as silent."""
PATIENCE = 30.0
LOOK_SECONDS = 0.02
SETTLED_SECONDS = 1.5


DUTIES_SECONDS = 3.0
NARROWER = 20 * (0.61 - 1200 / 1950)
"""A cell in Textual's pictures is 0.61 of a letter's height wide; a letter of Fira Code is wider than that."""


@dataclass(frozen=True)
class Picture:
    name: str
    start: str
    keys: tuple[str, ...] = ()
    size: tuple[int, int] = (100, 30)


PICTURES = (
    Picture("overview", "overview"),
    Picture("approvals", "approvals"),
    Picture("approval", "approvals", ("down", "enter")),
    Picture("agents", "agents"),
    Picture("jobs", "jobs"),
    Picture("job", "jobs", ("down", "down", "enter")),
    Picture("conversation", "threads", ("down", "enter")),
    Picture("tree", "threads", ("down", "enter", "t")),
    Picture("routes", "routes"),
    Picture("audit", "audit"),
    Picture("wide", "jobs", ("down", "down"), (160, 36)),
)


@contextmanager
def example_database() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="ac-") as name:
        folder = Path(name)
        # As root PostgreSQL runs under a user of its own, which has to be let in.
        folder.chmod(0o755)
        with embedded_postgres(folder / "data", say=print) as server:
            migrate(server.dsn())
            example_fleet.fill(server.dsn(), AT)
            example_story.fill(server.dsn(), AT)
            working = with_role(server.dsn(), APP)
            with Fleet(server.dsn()) as fleet:
                tell_the_story(fleet)
                asyncio.run(do_duties(working))
                # By the database's clock that was long before the time of the pictures.
                sealed_at(fleet, AT)
            yield working


async def do_duties(dsn: str) -> None:
    """A fleet that somebody looks after: else the overview would say, rightly, that nobody does."""
    backend = Backend(dsn)
    async with duties_done(backend):
        await asyncio.sleep(DUTIES_SECONDS)
    await backend.close()


def taken(picture: Picture, dsn: str) -> str:
    """The picture as SVG, without the random ids that would make it differ from itself."""
    setup = Setup(
        lambda say: open_direct(dsn, team=example_fleet.TEAM, user=example_fleet.ADMIN),
        "example",
        start=picture.start,
    )
    moments = [AT]
    app = ConsoleApp(lambda: setup, clock=lambda: moments[-1])
    shots: list[str] = []

    async def pose(pilot: Pilot[object]) -> None:
        await until(lambda: has_list(app) and has_pool(app))
        for key in picture.keys:
            await pilot.press(key)
            await pilot.pause()
            await until(lambda: app.view.has_answer)
        # Half a second after something appears keys decide nothing, and the screen says so: let that pass.
        moments.append(AT + timedelta(seconds=1))
        await pilot.pause(SETTLED_SECONDS)
        if isinstance(app.pane, OverviewPane):
            # What somebody sees who has had it open for ten minutes.
            app.pane.history = course()
            app.pane.tick()
            await pilot.pause()
        shots.append(app.export_screenshot())
        app.exit()

    app.run(headless=True, size=picture.size, auto_pilot=pose)
    return re.sub(r"terminal-\d+", "terminal", shots[0])


async def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError("the console did not get its data")
        await asyncio.sleep(LOOK_SECONDS)


def has_list(app: ConsoleApp) -> bool:
    return app.has_panes and app.pane.has_answer


def has_pool(app: ConsoleApp) -> bool:
    facts = app.query_one(HeaderBar).facts
    return facts is not None and facts.pool is not None


def painted(svg: str, png: Path) -> None:
    # librsvg strips the blanks at the edges of a text unless it is told to keep them, and takes letters as wide as
    # the font has them, whatever the length of a text should be: columns would drift apart.
    kept = svg.replace("<svg ", f'<svg xml:space="preserve" style="letter-spacing:{NARROWER}px" ', 1)
    subprocess.run(["rsvg-convert", "--output", png], input=kept.encode(), check=True)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    arguments.add_argument("folder", nargs="?", type=Path, default=Path(__file__).parents[1] / "screenshots")
    folder: Path = arguments.parse_args().folder
    folder.mkdir(exist_ok=True)
    paints = shutil.which("rsvg-convert") is not None
    with example_database() as dsn:
        for picture in PICTURES:
            svg = taken(picture, dsn)
            (folder / f"{picture.name}.svg").write_text(svg)
            if paints:
                painted(svg, folder / f"{picture.name}.png")
            print(f"{picture.name}: {picture.size[0]}x{picture.size[1]}")
    if not paints:
        print("No PNG was made: rsvg-convert is not here. Install librsvg2-bin and fonts-firacode.")


if __name__ == "__main__":
    main()
