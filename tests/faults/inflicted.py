"""What is done to the faulty world: each fault begins, lasts for a moment, and is over."""

import asyncio
import random
import signal
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass

import psycopg

from tests.faults.dropped_line import approve_and_hang_up, approve_by_a_wrong_clock, console_is_killed
from tests.faults.life import Life
from tests.faults.world import World

CUT_OFF_AT_WORK = """
    select count(pg_terminate_backend(pid)) from pg_stat_activity
     where datname = current_database() and application_name = 'agent-console' and backend_xid is not null
"""
CUT_OFF_ALL = """
    select count(pg_terminate_backend(pid)) from pg_stat_activity
     where datname = current_database() and application_name = 'agent-console'
"""
# Whoever holds the lock of a duty, sealing first of all.
CUT_OFF_SEALER = """
    select count(pg_terminate_backend(l.pid))
      from pg_locks l
     where l.locktype = 'advisory'
       and l.classid::bigint in (hashtext('agent_console.duties')::bigint & 4294967295,
                                 hashtext('agent_console.seals')::bigint & 4294967295)
"""
TRIES = 200


@dataclass(frozen=True)
class Inflicting:
    """`seconds` is how long a fault lasts that lasts at all."""

    world: World
    life: Life
    chance: random.Random
    seconds: float

    async def kill_a_server(self) -> None:
        place = self.chance.randrange(2)
        await asyncio.to_thread(self.world.kill, self.world.servers[place])
        await asyncio.to_thread(self.world.start_server, place)

    async def take_the_port_away(self) -> None:
        """For a while nobody listens there."""
        place = self.chance.randrange(2)
        await asyncio.to_thread(self.world.kill, self.world.servers[place])
        await asyncio.sleep(self.seconds)
        await asyncio.to_thread(self.world.start_server, place)

    async def kill_the_agents(self) -> None:
        place = self.chance.randrange(2)
        await asyncio.to_thread(self.world.kill, self.world.crews[place])
        self.world.lose_the_leases_of(place)
        await asyncio.to_thread(self.world.start_crew, place)

    async def kill_the_database(self) -> None:
        await asyncio.to_thread(self.world.postgres.kill)
        await asyncio.to_thread(self.world.postgres.start)

    async def cut_transactions(self) -> None:
        await self._cut_until_some(CUT_OFF_AT_WORK)

    async def cut_every_connection(self) -> None:
        await self._cut_until_some(CUT_OFF_ALL)

    async def cut_the_sealer(self) -> None:
        await self._cut_until_some(CUT_OFF_SEALER)

    async def _cut_until_some(self, statement: str) -> None:
        with psycopg.connect(self.world.fleet.administration, autocommit=True) as cutting:
            for _ in range(TRIES):
                found = cutting.execute(statement.encode()).fetchone()
                if found is not None and found[0]:
                    return
                await asyncio.sleep(0.005)

    async def lock_the_jobs(self) -> None:
        """The database is slow: nobody may touch a job for a while."""
        with psycopg.connect(self.world.fleet.administration) as locking:
            await asyncio.to_thread(locking.execute, "lock table jobs in access exclusive mode")
            await asyncio.sleep(self.seconds)

    async def use_up_the_connections(self) -> None:
        with ExitStack() as stack:
            with suppress(psycopg.OperationalError):
                while True:
                    stack.enter_context(psycopg.connect(self.world.fleet.administration))
            await asyncio.sleep(self.seconds)

    async def freeze_a_server(self) -> None:
        self.world.freeze(self.world.servers[self.chance.randrange(2)])
        await asyncio.sleep(self.seconds)
        self.world.thaw()

    async def freeze_the_database(self) -> None:
        self.world.postgres.freeze()
        await asyncio.sleep(self.seconds)
        self.world.postgres.thaw()

    async def jump_the_clocks(self) -> None:
        """Of the agents; the database's own clock is the only one that decides."""
        for crew in self.world.crews.values():
            crew.send_signal(self.chance.choice((signal.SIGUSR1, signal.SIGUSR2)))

    async def kill_a_console(self) -> None:
        await asyncio.to_thread(console_is_killed, self.world)

    async def drop_the_line_in_an_approval(self) -> None:
        """A person has pressed y when the line drops: it is decided, or it is not."""
        self.life.deciding = False
        try:
            await self.life.ask_for_a_person()
            await asyncio.to_thread(approve_and_hang_up, self.world)
        finally:
            self.life.deciding = True

    async def decide_by_a_wrong_clock(self) -> None:
        """To a person whose clock is hours off nothing is too late and nothing too early."""
        self.life.deciding = False
        try:
            await self.life.ask_for_a_person()
            await asyncio.to_thread(approve_by_a_wrong_clock, self.world, self.chance.choice(("+30h", "-30h")))
        finally:
            self.life.deciding = True

    async def find_no_names(self) -> None:
        """No agent can look up where its server is, and each has to: its server went away and came back."""
        for crew in self.world.crews.values():
            crew.send_signal(signal.SIGHUP)
        await self.kill_a_server()
        await asyncio.sleep(self.seconds)
        for crew in self.world.crews.values():
            crew.send_signal(signal.SIGHUP)


FAULTS: dict[str, Callable[[Inflicting], Awaitable[None]]] = {
    "a server is killed": Inflicting.kill_a_server,
    "agents are killed": Inflicting.kill_the_agents,
    "a console is killed": Inflicting.kill_a_console,
    "the sealer is cut off": Inflicting.cut_the_sealer,
    "the database is killed": Inflicting.kill_the_database,
    "transactions are cut off": Inflicting.cut_transactions,
    "every connection is cut": Inflicting.cut_every_connection,
    "the database is slow": Inflicting.lock_the_jobs,
    "the database stands still": Inflicting.freeze_the_database,
    "no connection is left": Inflicting.use_up_the_connections,
    "agents' clocks jump": Inflicting.jump_the_clocks,
    "a server is frozen and thawed": Inflicting.freeze_a_server,
    "a port is gone": Inflicting.take_the_port_away,
    "names are not found": Inflicting.find_no_names,
    "a line drops in an approval": Inflicting.drop_the_line_in_an_approval,
    "a person's clock is wrong": Inflicting.decide_by_a_wrong_clock,
}
