"""The console on a fleet that stands still, for whoever measures: what changes in it, the bench has changed."""

import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.terminal_pty import PtyProgram
from tests.support import example_fleet, example_story
from tests.support.clusters import reachable_folder
from tests.support.fleet import AT, Fleet

from agent_console.database.embedded import embedded_postgres
from agent_console.database.migrate import migrate
from agent_console.repository.port import Topic
from agent_console.repository.postgres.live.changes import CHANNEL


@contextmanager
def still_fleet(*, in_memory: bool = True) -> Iterator[Fleet]:
    """The example fleet with its story, on the embedded PostgreSQL as users get it. Its time is the future, so
    that no age in it changes."""
    with reachable_folder(in_memory=in_memory) as folder, embedded_postgres(folder / "data") as server:
        migrate(server.dsn())
        example_fleet.fill(server.dsn(), AT)
        example_story.fill(server.dsn(), AT)
        with Fleet(server.dsn()) as fleet:
            yield fleet


@contextmanager
def console(fleet: Fleet, *options: str) -> Iterator[PtyProgram]:
    place = ("--dsn", fleet.working, "--team", example_fleet.TEAM, "--user", example_fleet.ADMIN)
    with tempfile.TemporaryDirectory(prefix="ac-") as name:
        home = {"HOME": name, "AGENT_CONSOLE_DATA": str(Path(name) / "data")}
        program = PtyProgram([sys.executable, "-m", "agent_console", *place, *options], home)
        try:
            yield program
        finally:
            program.close()


def announce(fleet: Fleet, topic: Topic) -> None:
    """What every writer leaves with the announcer, for rows that the bench has written itself."""
    notice = {"team": str(fleet.team_id()), "topic": topic.value, "ids": None}
    fleet.execute("select pg_notify(%s, %s)", CHANNEL, json.dumps(notice))
