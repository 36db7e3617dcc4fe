"""The stage of `bench.fleet`: a database, a server and the processes of the agents, all of which can be killed."""

import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
from bench.fleet_agents import Part, packed
from bench.fleet_size import add_team
from tests.support.clusters import reachable_folder

from agent_console.database.embedded import embedded_postgres
from agent_console.database.migrate import migrate
from agent_console.database.operator_token import mint_token
from agent_console.database.roles import APP, with_role
from agent_console.domain.ids import AgentId, RouteId, TeamId, ThreadId, UserId
from agent_console.domain.secrets import Secret

TEAM = "fleet"
AGENTS, PROCESSES, ASKERS = 200, 8, 20
DECIDER = "decider@fleet.example"
END_SECONDS = 60

KEYS = """
    update agents a set api_key_hash = k.hash
      from unnest(%s::uuid[], %s::text[]) as k (id, hash)
     where a.team_id = %s and a.id = k.id
"""
PERSON = "insert into users (team_id, id, email, full_name, role) values (%s, %s, %s, 'Decider', 'operator')"
THREAD = """
    with made as (
        insert into threads (team_id, id, title, visibility, created_by_user_id) values (%(team)s, %(thread)s,
               'reviews', 'shared', %(person)s)
    )
    insert into thread_participants (team_id, id, thread_id, participant_type, user_id, agent_id,
                                     can_read, can_write)
    values (%(team)s, new_id(), %(thread)s, 'human', %(person)s, null, true, true),
           (%(team)s, new_id(), %(thread)s, 'agent', null, %(asker)s, true, true)
"""
ROUTE = """
    insert into a2a_routes (team_id, id, from_agent_id, to_agent_id, policy) values (%s, %s, %s, %s, %s)
"""
NAMES = "select name, worker_id from agents where id = any(%s)"


@dataclass
class Fleet:
    dsn: str
    address: str
    creator: str
    decider: str
    killed: dict[str, list[datetime]] = field(default_factory=dict)
    """When whom: only what they held then may be lost."""

    def number(self, question: str) -> int:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            ((found,),) = connection.execute(question.encode()).fetchall()
        return int(found)

    def answers_again(self, within: float) -> None:
        deadline = time.monotonic() + within
        while True:
            try:
                self.number("select 1")
            except psycopg.OperationalError:
                assert time.monotonic() < deadline, "the database does not come back"
                time.sleep(0.05)
            else:
                return


def _megabytes(pid: int) -> float:
    """Nothing, of one that was killed just now."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except OSError:
        return 0.0
    return pages * resource.getpagesize() / 1e6


@dataclass
class Processes:
    """The server and the agents. The killed process of agents is left out of their memory: it is younger."""

    dsn: str
    environment: Mapping[str, str]
    teams: list[list[tuple[AgentId, Part]]]
    log: Path
    """What the server says."""
    fleet: Fleet | None = None
    server: subprocess.Popen[str] | None = None
    agents: dict[int, subprocess.Popen[str]] = field(default_factory=dict)
    young: set[int] = field(default_factory=set)

    def start_server(self, port: int = 0) -> str:
        words = ("-m", "agent_console", "--dsn", self.dsn, "serve", "--no-access-log", "--port", str(port))
        with self.log.open("a") as log:
            self.server = subprocess.Popen(
                [sys.executable, *words], stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True
            )
        assert self.server.stdout is not None
        address = self.server.stdout.readline().strip()
        assert address.startswith("http://"), "the server did not start"
        return address

    def start_agents(self, place: int, address: str) -> None:
        words = [sys.executable, "-m", "bench.fleet_agents", address]
        started = subprocess.Popen(
            words, stdin=subprocess.PIPE, text=True, env=dict(self.environment), start_new_session=True
        )
        assert started.stdin is not None
        started.stdin.write(packed([part for _, part in self.teams[place]]))
        started.stdin.close()
        self.agents[place] = started

    def kill_server(self) -> None:
        assert self.server is not None
        assert self.fleet is not None
        self.server.kill()
        self.server.wait()
        self.start_server(int(self.fleet.address.rpartition(":")[2]))

    def kill_agents(self, place: int) -> None:
        assert self.fleet is not None
        self.young.add(place)
        self.agents[place].kill()
        self.agents[place].wait()
        killed_at = datetime.now(UTC)
        with psycopg.connect(self.fleet.dsn, autocommit=True) as connection:
            names = connection.execute(NAMES, ([agent for agent, _ in self.teams[place]],)).fetchall()
        for name in (str(name) for row in names for name in row):
            self.fleet.killed.setdefault(name, []).append(killed_at)
        self.start_agents(place, self.fleet.address)

    def server_megabytes(self) -> float:
        return 0.0 if self.server is None or self.server.poll() is not None else _megabytes(self.server.pid)

    def agents_megabytes(self) -> float:
        return sum(_megabytes(one.pid) for place, one in self.agents.items() if place not in self.young)

    def end(self) -> None:
        for program in (*self.agents.values(), *([self.server] if self.server else [])):
            program.terminate()
        for program in (*self.agents.values(), *([self.server] if self.server else [])):
            try:
                program.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                print(f"process {program.pid} did not end within {END_SECONDS} s of being told to", flush=True)
                program.kill()
                program.wait()


def _parts(dsn: str, team_id: TeamId, agents: list[AgentId]) -> list[tuple[AgentId, Part]]:
    """The first ask, each its own reviewer in a thread of its own; every second of them needs a person."""
    keys = [Secret.mint(team_id, agent) for agent in agents]
    askers, reviewers, person = agents[:ASKERS], agents[ASKERS : 2 * ASKERS], UserId.new()
    threads = [ThreadId.new() for _ in askers]
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(KEYS, (agents, [key.hash for key in keys], team_id))
        connection.execute(PERSON, (team_id, person, DECIDER))
        for place, (asker, reviewer, thread) in enumerate(zip(askers, reviewers, threads, strict=True)):
            facts = {"team": team_id, "thread": thread, "person": person, "asker": asker}
            connection.execute(THREAD, facts)
            policy = "requires_human_approval" if place % 2 else "allowed"
            connection.execute(ROUTE, (team_id, RouteId.new(), asker, reviewer, policy))
    asking = [
        Part(key.word, "asks", str(reviewer), str(thread))
        for key, reviewer, thread in zip(keys, reviewers, threads, strict=False)
    ]
    others = [Part(key.word, "reviews" if place < ASKERS else "works") for place, key in enumerate(keys[ASKERS:])]
    return list(zip(agents, [*asking, *others], strict=True))


@contextmanager
def staged() -> Iterator[str]:
    with reachable_folder(in_memory=False) as folder, embedded_postgres(folder / "data") as postgres:
        migrate(postgres.dsn())
        yield postgres.dsn()


@contextmanager
def settled(dsn: str) -> Iterator[tuple[Fleet, Processes]]:
    """Everybody is there and works."""
    team_id, agents = add_team(dsn, TEAM, AGENTS)
    parts = _parts(dsn, team_id, agents)
    with TemporaryDirectory() as no_certificates, TemporaryDirectory() as logs:
        # No agent speaks TLS here, and reading the machine's root certificates takes each of them 50 ms.
        environment = {name: value for name, value in os.environ.items() if name != "SSL_CERT_FILE"}
        environment["SSL_CERT_DIR"] = no_certificates
        teams = [parts[n::PROCESSES] for n in range(PROCESSES)]
        processes = Processes(with_role(dsn, APP), environment, teams, Path(logs) / "server.log")
        try:
            address = processes.start_server()
            creator, decider = mint_token(dsn, f"admin@{TEAM}.example"), mint_token(dsn, DECIDER)
            fleet = processes.fleet = Fleet(dsn, address, creator.word, decider.word)
            for place in range(PROCESSES):
                processes.start_agents(place, address)
            yield fleet, processes
        finally:
            processes.end()
