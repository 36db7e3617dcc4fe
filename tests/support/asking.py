"""Agents that ask agents, and the people around them: callers of one fleet, directly or over one server."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from psycopg.types.json import Jsonb

from agent_console.domain.delegation import Delegation, NewDelegation
from agent_console.domain.ids import RouteId, RunId, ThreadId
from agent_console.domain.runs import NewRun, Run
from agent_console.domain.secrets import Secret
from agent_console.repository.http.repository import HttpRepository
from agent_console.repository.operations.runs import RUNS_DELEGATE, RUNS_START
from agent_console.repository.port import Repository
from agent_console.repository.postgres.identify import by_name, by_token
from agent_console.repository.postgres.repository import Backend, PostgresRepository
from tests.support.fleet import Fleet
from tests.support.serving import serving

ANA, OLE, VERA = "ana@example.com", "ole@example.com", "vera@example.com"


@dataclass(frozen=True)
class Callers:
    """Everybody of the fleet as a caller, each with a credential of their own."""

    fleet: Fleet
    backend: Backend | None
    url: str
    stack: AsyncExitStack
    known: dict[str, Repository] = field(default_factory=dict)

    async def person(self, email: str = ANA) -> Repository:
        if email not in self.known:
            self.known[email] = await self._person(email)
        return self.known[email]

    async def agent(self, name: str) -> Repository:
        if name not in self.known:
            self.known[name] = await self.restarted(name)
        return self.known[name]

    async def _person(self, email: str) -> Repository:
        if self.backend is not None:
            return PostgresRepository(self.backend, by_name("example", email))
        return await self.stack.enter_async_context(HttpRepository(self.url, self.fleet.token(email)))

    async def restarted(self, name: str) -> Repository:
        """The agent as if it had just begun; whatever it had open before is over."""
        secret = Secret.mint(self.fleet.team_id(), self.fleet.agent_id(name))
        has_room = "update agents set api_key_hash = %s, max_concurrent_jobs = 50 where name = %s"
        self.fleet.execute(has_room, secret.hash, name)
        if self.backend is not None:
            return PostgresRepository(self.backend, by_token(secret))
        return await self.stack.enter_async_context(HttpRepository(self.url, secret.word))


@asynccontextmanager
async def callers(fleet: Fleet, kind: str) -> AsyncIterator[Callers]:
    """`kind` is direct or http."""
    async with AsyncExitStack() as stack:
        if kind == "http":
            yield Callers(fleet, None, await stack.enter_async_context(serving(fleet.working)), stack)
            return
        backend = Backend(fleet.working)
        stack.push_async_callback(backend.close)
        yield Callers(fleet, backend, "", stack)


def add_route(fleet: Fleet, from_agent: str, to_agent: str, policy: str = "allowed", version: int = 1) -> RouteId:
    route_id = RouteId.new()
    fleet.execute(
        "insert into a2a_routes (team_id, id, from_agent_id, to_agent_id, policy, version)"
        " values (%s, %s, %s, %s, %s, %s)",
        *(fleet.team_id(), route_id, fleet.agent_id(from_agent), fleet.agent_id(to_agent), policy, version),
    )
    return route_id


def set_policy(fleet: Fleet, from_agent: str, to_agent: str, policy: str) -> None:
    """As somebody would by hand, without a word to anybody who waits."""
    fleet.execute(
        "update a2a_routes set policy = %s, version = version + 1 where from_agent_id = %s and to_agent_id = %s",
        *(policy, fleet.agent_id(from_agent), fleet.agent_id(to_agent)),
    )


def set_setting(fleet: Fleet, name: str, value: object) -> None:
    fleet.execute(
        "insert into settings (team_id, name, value) values (%s, %s, %s)"
        " on conflict (team_id, name) do update set value = excluded.value",
        *(fleet.team_id(), name, Jsonb(value)),
    )


async def started(person: Repository, fleet: Fleet, thread_id: ThreadId, target: str = "atlas") -> Run:
    """A run that a person asked for."""
    return await person.call(RUNS_START, NewRun(thread_id=thread_id, target_agent_id=fleet.agent_id(target)))


async def asks(
    agent: Repository,
    fleet: Fleet,
    thread_id: ThreadId,
    to: str = "beacon",
    words: str = "Count the files.",
    *,
    key: str | None = None,
    parent: RunId | None = None,
) -> Delegation:
    return await agent.call(
        RUNS_DELEGATE,
        NewDelegation(
            to=fleet.agent_id(to), thread_id=thread_id, input=words, idempotency_key=key, parent_run_id=parent
        ),
    )


def trail(fleet: Fleet, like: str = "%") -> list[tuple[object, ...]]:
    """Action, who did it, decision: of all that was written down."""
    return fleet.execute(
        "select action, actor_label, decision from audit_log where action like %s order by seq", like
    )


def facts(fleet: Fleet, action: str) -> list[dict[str, object]]:
    """The metadata of all rows of one action, oldest first."""
    rows = fleet.execute("select metadata from audit_log where action = %s order by seq", action)
    return [row[0] for row in rows if isinstance(row[0], dict)]


def count(fleet: Fleet, *tables: str) -> list[object]:
    return [fleet.one(f"select count(*) from {table}") for table in tables]
