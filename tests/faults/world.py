"""A running fleet of real processes, each of which may be killed: a database, two servers, two crews of agents."""

import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

import psycopg

from agent_console.database.migrate import migrate
from agent_console.domain.secrets import Secret
from tests.cli.program import environment
from tests.faults.agents import Crew
from tests.faults.postgres import LOOK_SECONDS, SECONDS, Postgres, own_postgres
from tests.queue.crew import EMPTY
from tests.support import example_fleet
from tests.support.fleet import AT, Fleet
from tests.support.warm_start import REPOSITORY, WarmProgram, warm_python

CREWS = (("atlas", "beacon"), ("dispatch", "cartographer"))
ASKER, ASKED = "ember", "dispatch"
OPERATORS = ("ana@example.com", "ole@example.com")
CONNECTIONS = 60

HAS_ROOM = "update agents set api_key_hash = %s, max_concurrent_jobs = 10 where name = %s"
# The fixed fleet lives in the future; here it has to be seen who was heard when.
HEARD_NOW = "update agent_runtime set last_heartbeat_at = now() where last_heartbeat_at > now()"
# Nobody waits for a lease of somebody who was killed, nor for the half minute after it.
TIME_PASSES_FOR_THE_DEAD = """
    update jobs j
       set lease_expires_at = now(), look_at = now()
      from agents a
     where a.team_id = j.team_id and a.id = j.agent_id and a.name = any(%s)
       and j.status in ('assigned', 'running') and j.lease_expires_at > now()
"""
RETRIES_ARE_DUE = """
    update jobs set next_attempt_at = now(), look_at = now()
     where status = 'queued' and next_attempt_at > now() and look_at > now()
"""


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


@dataclass
class World:
    postgres: Postgres
    folder: Path
    fleet: Fleet
    crew_size: int
    ports: tuple[int, int] = field(default_factory=lambda: (free_port(), free_port()))
    servers: dict[int, WarmProgram] = field(default_factory=dict)
    crews: dict[int, WarmProgram] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    frozen: list[WarmProgram] = field(default_factory=list)

    def url(self, place: int) -> str:
        return f"http://127.0.0.1:{self.ports[place]}"

    def names(self, crew: int) -> list[str]:
        return list(CREWS[crew][: self.crew_size])

    @property
    def everybody(self) -> list[str]:
        return [*self.names(0), *self.names(1)]

    @property
    def journal(self) -> Path:
        return self.folder / "journal"

    @property
    def urls(self) -> tuple[str, str]:
        return self.url(0), self.url(1)

    @property
    def variables(self) -> dict[str, str]:
        return environment(self.folder, AGENT_CONSOLE_SERVER_KEY="A" * 43)

    def start_server(self, place: int) -> None:
        words = ("--dsn", self.fleet.working, "serve", "--no-access-log", "--port", str(self.ports[place]))
        with (self.folder / f"server{place}.log").open("ab") as log:
            started = warm_python().start(
                "agent_console", *words, environment=self.variables, stderr=log.fileno(), stdin=_nothing()
            )
        assert started.stdout is not None
        assert started.stdout.readline().startswith("http://"), "the server did not start"
        self.servers[place] = started

    def start_crew(self, place: int) -> None:
        # By a name, which has to be looked up whenever the line is new.
        url = self.url(place).replace("127.0.0.1", "localhost")
        crew = Crew(url, str(self.journal), {name: self.keys[name] for name in self.names(place)})
        with (self.folder / f"crew{place}.log").open("ab") as log:
            started = warm_python().start(
                "tests.faults.agents",
                environment=self.variables,
                folder=REPOSITORY,
                stdout=log.fileno(),
                stderr=log.fileno(),
            )
        assert started.stdin is not None
        started.stdin.write(json.dumps(asdict(crew)) + "\n")
        started.stdin.flush()
        self.crews[place] = started

    def kill(self, program: WarmProgram) -> None:
        with program:
            program.kill()

    def freeze(self, program: WarmProgram) -> None:
        self.frozen.append(program)
        program.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        while self.frozen:
            self.frozen.pop().send_signal(signal.SIGCONT)

    @contextmanager
    def looking(self) -> Iterator[Fleet]:
        """On one connection of our own; those of the database may still be used up for a moment."""
        with ExitStack() as stack:
            deadline = time.monotonic() + SECONDS
            while True:
                try:
                    stack.enter_context(self.fleet).execute("select")
                    break
                except psycopg.OperationalError:
                    assert time.monotonic() < deadline, "the database does not come back"
                    time.sleep(LOOK_SECONDS)
            yield self.fleet

    def lose_the_leases_of(self, crew: int) -> None:
        """Of what it holds now; to be asked before it is started again."""
        with self.looking() as fleet:
            fleet.execute(TIME_PASSES_FOR_THE_DEAD, self.names(crew))

    def end(self) -> None:
        self.thaw()
        for program in (*self.crews.values(), *self.servers.values()):
            self.kill(program)


def _nothing() -> int:
    return os.open(os.devnull, os.O_RDONLY)


@contextmanager
def faulty_world(folder: Path, *, crew_size: int = 2) -> Iterator[World]:
    """Everybody is there and works on an empty queue."""
    with ExitStack() as stack:
        postgres = stack.enter_context(own_postgres(folder / "database", connections=CONNECTIONS))
        migrate(postgres.dsn)
        example_fleet.fill(postgres.dsn, AT)
        fleet = Fleet(postgres.dsn)
        fleet.execute(EMPTY)
        fleet.execute(HEARD_NOW)
        world = World(postgres, folder, fleet, crew_size)
        for name in (ASKER, *world.everybody):
            secret = Secret.mint(fleet.team_id(), fleet.agent_id(name))
            fleet.execute(HAS_ROOM, secret.hash, name)
            world.keys[name] = secret.word
        stack.callback(world.end)
        for place in range(2):
            world.start_server(place)
            world.start_crew(place)
        yield world
