"""Two teams in one database, each with one of everything: the neighbours have a story, and nobody may read it."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

import pytest

from agent_console.domain.ids import KINDS, Id, TeamId, ThreadId
from agent_console.domain.secrets import Secret
from agent_console.repository.port import Repository
from agent_console.repository.postgres.identify import by_token
from agent_console.repository.postgres.repository import PostgresRepository
from tests.support import example_fleet
from tests.support.act_stage import ANA, Stage, new_name
from tests.support.asking import OLE, VERA, callers, started
from tests.support.conversations import let_in, say
from tests.support.fleet import AT, Fleet

Ids = Mapping[str, Id]
"""One id of each kind, by its prefix."""

NEIGHBOURS = "neighbours"
TABLES = {
    "usr": "users",
    "agt": "agents",
    "art": "registration_tokens",
    "wkt": "worker_tokens",
    "opt": "operator_tokens",
    "con": "connectors",
    "col": "collections",
    "job": "jobs",
    "thr": "threads",
    "par": "thread_participants",
    "msg": "messages",
    "run": "runs",
    "rte": "a2a_routes",
    "apr": "approvals",
    "ses": "sessions",
    "aud": "audit_log",
}


@dataclass(frozen=True)
class TwoTeams:
    """`stage` is the team that asks, with `ours`; `theirs` belongs to the neighbours."""

    stage: Stage
    ours: Ids
    theirs: Ids

    async def caller(self, who: str) -> Repository:
        return await (self.stage.callers.person(who) if "@" in who else self.stage.callers.agent(who))


@asynccontextmanager
async def two_teams(story: Fleet, keys: pytest.MonkeyPatch) -> AsyncIterator[TwoTeams]:
    """The story becomes the neighbours'; the example fleet is made anew beside it."""
    async with callers(story, "direct") as crew:
        await furnish(Stage(story, crew, await crew.person(ANA), keys))
        theirs = ids_of(story, story.team_id())
    _move_out(story)
    example_fleet.fill(story.administration, AT + timedelta(hours=1))
    async with our_team(story, keys) as (stage, ours):
        yield TwoTeams(stage, ours, theirs)


@asynccontextmanager
async def our_team(fleet: Fleet, keys: pytest.MonkeyPatch) -> AsyncIterator[tuple[Stage, Ids]]:
    async with callers(fleet, "direct") as crew:
        stage = Stage(fleet, crew, await crew.person(ANA), keys)
        talk = await conversation(stage)
        await furnish(stage)
        crew.known["worker"] = await _worker(stage)
        yield stage, ids_of(fleet, fleet.team_id()) | talk


async def furnish(stage: Stage) -> None:
    """What the story does not have: tokens, storage and an open session."""
    await stage.do("registration_tokens.mint")
    await stage.do("worker_tokens.mint", worker_id="beacon")
    await stage.do("operator_tokens.mint", user_id=stage.fleet.user_id(VERA))
    await stage.connector()
    local = {"type": "local", "location": "/srv", "bound_agent_id": stage.agent("atlas")}
    await stage.do("collections.create", name=new_name(), **local)
    await stage.session()


async def _worker(stage: Stage) -> Repository:
    """Who holds a worker token of atlas that allows everything."""
    minted = await stage.do("worker_tokens.mint", worker_id="atlas")
    word = getattr(minted, "secret", None)
    assert isinstance(word, str)
    assert stage.callers.backend is not None
    return PostgresRepository(stage.callers.backend, by_token(Secret.parse(word)))


async def conversation(stage: Stage) -> dict[str, Id]:
    """A thread with a participant, a message, a run and a request that belong together."""
    fleet, waits = stage.fleet, (await stage.waiting()).approval
    assert waits is not None
    found = fleet.one("select thread_id from approvals where id = %s", waits.id)
    assert isinstance(found, UUID)
    thread_id = ThreadId.of(found)
    return {
        "thr": thread_id,
        "apr": waits.id,
        "par": let_in(fleet, thread_id, OLE, write=True),
        "msg": say(fleet, thread_id, ANA),
        "run": (await started(stage.admin, fleet, thread_id, "dispatch")).id,
    }


def _move_out(story: Fleet) -> None:
    story.execute("update teams set slug = %s", NEIGHBOURS)
    story.execute("update users set email = 'their-' || email where email is not null")
    story.execute("update agents set name = 'their-' || name, worker_id = 'their-' || worker_id")


def ids_of(fleet: Fleet, team_id: TeamId) -> dict[str, Id]:
    """Of people and agents the first: no agent's system user, and nobody who was revoked."""
    found = dict[str, Id]()
    for prefix, table in TABLES.items():
        id_ = fleet.one(f"select id from {table} where team_id = %s order by id limit 1", team_id)
        assert isinstance(id_, UUID)
        found[prefix] = KINDS[prefix](int=id_.int)
    return found | {"tea": team_id}
