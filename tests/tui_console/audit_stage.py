"""A trail on the stage: acts with fixed ids and times, and another side that can be made to wait."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Self
from uuid import UUID

from psycopg.types.json import Jsonb

from agent_console.domain.audit import Fact
from agent_console.domain.ids import AgentId, AuditId, Id, RunId, ThreadId, UserId
from agent_console.repository.operations import Answered, Asked, Operation
from agent_console.repository.port import Change, Repository, Topic
from agent_console.tui.app import ConsoleApp
from agent_console.tui.link import Opening
from agent_console.tui.panes.audit.live import AuditPane
from tests.support.fleet import AT, Fleet
from tests.support.trail import seal
from tests.tui_console.stage import Say, announce

# Whatever is given is hashed, as the program does it.
WRITE = """
    insert into audit_log (team_id, id, actor_type, actor_user_id, actor_agent_id, actor_label, action,
                           resource_type, resource_id, thread_id, run_id, decision, reason, ip, user_agent,
                           metadata, event_hash, created_at)
    select w.team, w.id, w.type, w.person, w.agent, w.label, w.action, w.kind, w.thing, w.thread, w.run,
           w.decision, w.reason, w.ip, w.program, w.facts,
           audit_event_hash(1::smallint, w.team, w.id, w.at, w.type, w.person, w.agent, w.label, w.action, w.kind,
                            w.thing, w.thread, w.run, w.decision, w.reason, w.ip, w.program, w.facts), w.at
      from (select %s::uuid as team, %s::uuid as id, %s as type, %s::uuid as person, %s::uuid as agent,
                   %s as label, %s as action, %s as kind, %s as thing, %s::uuid as thread, %s::uuid as run,
                   %s as decision, %s as reason, %s::inet as ip, %s as program, %s::jsonb as facts,
                   %s::timestamptz as at) as w
"""
MONTH = "create table {name} partition of audit_log for values from ('{month}') to ('{following}')"
FILL = """
    select append_audit(%s, 'agent', null, %s, 'atlas', 'job.create', 'job', %s || n::text)
      from generate_series(1, %s) as n
"""


@dataclass(frozen=True)
class Told:
    """An act to be written; without an actor it is the system's."""

    action: str
    kind: str
    thing: str
    ago: float
    person: str | None = None
    agent: str | None = None
    decision: str | None = None
    reason: str | None = None
    thread: ThreadId | None = None
    run: RunId | None = None
    facts: dict[str, Fact] = field(default_factory=dict)


def make_month(fleet: Fleet, at: datetime) -> None:
    month = at.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    name, following = f"audit_log_{month:%Y_%m}", month.replace(month=month.month % 12 + 1)
    if fleet.one("select to_regclass(%s) is null", name):
        fleet.execute("set role agent_console_owner")
        fleet.execute(MONTH.format(name=name, month=month, following=following))
        fleet.execute("reset role")


def tell(fleet: Fleet, *acts: Told) -> list[AuditId]:
    """Write acts at fixed times, each in a transaction of its own, the oldest first."""
    written = []
    for number, told in enumerate(sorted(acts, key=lambda act: -act.ago), 1):
        at = AT - timedelta(seconds=told.ago)
        make_month(fleet, at)
        audit_id = AuditId(int=(int(at.timestamp() * 1000) << 80) | (7 << 76) | (2 << 62) | number)
        person = None if told.person is None else fleet.user_id(told.person)
        agent = None if told.agent is None else fleet.agent_id(told.agent)
        fleet.execute(
            WRITE,
            *(fleet.team_id(), audit_id, _type(person, agent), person, agent, _label(fleet, person, told.agent)),
            *(told.action, told.kind, told.thing, told.thread, told.run, told.decision, told.reason),
            *("10.0.0.7" if person else None, "agent-console/1.0" if person else None, Jsonb(told.facts), at),
        )
        written.append(audit_id)
    return written


def _type(person: UserId | None, agent: AgentId | None) -> str:
    return "human" if person else "agent" if agent else "system"


def _label(fleet: Fleet, person: UserId | None, agent: str | None) -> str:
    if person is not None:
        return str(fleet.one("select full_name from users where id = %s", person))
    return agent or "agent-console"


def fill(fleet: Fleet, count: int, name: str = "job_") -> None:
    """Many acts of an agent at once, in one transaction, not sealed yet."""
    fleet.execute(FILL, fleet.team_id(), fleet.agent_id("atlas"), name, count)


def seal_and_tell(fleet: Fleet) -> None:
    seal(fleet)
    announce(fleet, Topic.AUDIT)


def sealed_at(fleet: Fleet, at: datetime) -> None:
    """Let the chain say that it was sealed at this time."""
    fleet.execute("update audit_heads set sealed_at = %s", at)


def every_act(fleet: Fleet) -> list[str]:
    """The whole trail as it should be shown, from the database itself."""
    rows = fleet.execute("select id from audit_log where team_id = %s order by seq desc", fleet.team_id())
    return [str(AuditId.of(found)) for (found,) in rows if isinstance(found, UUID)]


def audit_of(app: ConsoleApp) -> AuditPane:
    assert isinstance(app.pane, AuditPane)
    return app.pane


def found_id(fleet: Fleet, kind: type[Id], statement: str) -> Id:
    found = fleet.one(statement)
    assert isinstance(found, UUID)
    return kind(int=found.int)


@dataclass
class Held:
    """The real other side, but it answers one operation only so many times, and then not until it is let go."""

    behind: Repository
    name: str
    times: int
    let_go: asyncio.Event = field(default_factory=asyncio.Event)

    async def call(self, operation: Operation[Asked, Answered], request: Asked) -> Answered:
        if operation.name == self.name:
            if self.times == 0:
                await self.let_go.wait()
            self.times = max(0, self.times - 1)
        return await self.behind.call(operation, request)

    def changes(self) -> AsyncGenerator[Change, None]:
        return self.behind.changes()

    async def close(self) -> None:
        await self.behind.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Whoever opened the one behind closes it."""


def held_after(opening: Opening, name: str, times: int, sides: list[Held] | None = None) -> Opening:
    """`sides` gets the one that is opened, for whoever wants to let it go."""

    @asynccontextmanager
    async def held(say: Say) -> AsyncIterator[Repository]:
        async with opening(say) as behind:
            side = Held(behind, name, times)
            if sides is not None:
                sides.append(side)
            yield side

    return held
