"""Whoever gives an id of another team is answered as if there were no such thing, whatever is asked about it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, aclosing, nullcontext
from dataclasses import dataclass, field

import pytest

from agent_console.domain.ids import Id, ThreadId
from agent_console.domain.jobs import NewJob
from agent_console.repository.operations import JOBS_CREATE
from agent_console.repository.port import REFETCH, Change, Topic
from agent_console.repository.postgres.repository import open_direct
from tests.attacks.asked_about import FIELDS, ROLES, answer, has_its_own, is_refusal, may_ask, valid, was_not_read
from tests.attacks.request_fields import IdField, Values
from tests.attacks.two_teams import NEIGHBOURS, Ids, TwoTeams, conversation, our_team, two_teams
from tests.support.acts import EXAMPLES
from tests.support.asking import ANA, OLE
from tests.support.conversations import let_in
from tests.support.fleet import Fleet

SOON = 60.0
# A person never writes in the name of a run, and a seal says itself whose it is: nobody looks for such a thing.
NEVER_READ = {f"{ANA}: messages.post run_id", f"{ANA}: audit.verify seal.team_id"}


@pytest.fixture
async def teams(story: Fleet, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[TwoTeams]:
    async with two_teams(story, monkeypatch) as both:
        yield both


@dataclass
class Asking:
    """Everybody who may asks the same of nothing at all and of what is hidden from them."""

    teams: TwoTeams
    hidden: Ids
    told_apart: list[str] = field(default_factory=list)
    unread: set[str] = field(default_factory=set)
    _valid: dict[str, Values] = field(default_factory=dict)

    async def about(self, asked: IdField, who: str) -> None:
        of_nothing = await self.answer(asked, who, asked.kind.new())
        of_hidden = await self.answer(asked, who, self.hidden[asked.kind.prefix])
        if of_nothing != of_hidden:
            self.told_apart.append(f"{who}: {asked.name}\n  {of_nothing}\n  {of_hidden}")
        if was_not_read(of_nothing):
            self.unread.add(f"{who}: {asked.name}")

    async def answer(
        self, asked: IdField, who: str, id_: Id, looking_on: AbstractContextManager[object] | None = None
    ) -> str:
        """All that is heard; whoever looks on sees the asking alone. What was done may have used something up."""
        caller, values = await self.teams.caller(who), await self.values(asked)
        with looking_on or nullcontext():
            heard = await answer(caller, asked, values, id_)
        if asked.operation.changes and not is_refusal(heard):
            self._valid.clear()
        return heard

    async def values(self, asked: IdField) -> Values:
        """Making an example costs more than asking, and who is refused has used nothing up."""
        key = asked.name if has_its_own(asked) else asked.operation.name
        if key not in self._valid:
            self._valid[key] = await valid(self.teams, asked)
        return self._valid[key]


@pytest.mark.rule("U000-33")
async def test_an_id_of_another_team_is_the_id_of_nothing(teams: TwoTeams, story: Fleet) -> None:
    theirs = rows_of_neighbours(story)

    asking = Asking(teams, teams.theirs)
    for asked in FIELDS:
        for who in (name for name in ROLES if may_ask(name, asked)):
            await asking.about(asked, who)

    assert not asking.told_apart, "\n".join(asking.told_apart)
    assert asking.unread == NEVER_READ
    assert rows_of_neighbours(story) == theirs


@pytest.mark.rule("U002-22")
async def test_of_what_one_team_does_another_hears_nothing(teams: TwoTeams, story: Fleet) -> None:
    neighbour = f"their-{ANA}"
    async with (
        asyncio.timeout(SOON),
        open_direct(story.working, team=NEIGHBOURS, user=neighbour) as theirs,
        aclosing(theirs.changes()) as changes,
    ):
        first = await anext(changes)
        for name in ("jobs.create", "agents.rename", "threads.create", "routes.put", "users.create"):
            await teams.stage.do(name, **await EXAMPLES[name](teams.stage))
        own = await theirs.call(JOBS_CREATE, NewJob(type="report", payload={}))
        then = await anext(changes)

    assert (first, then) == (REFETCH, Change(topic=Topic.JOBS, id=str(own.id)))


async def test_a_thread_one_was_taken_out_of_is_the_id_of_nothing(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with our_team(fleet, monkeypatch) as (stage, ours):
        hidden = await conversation(stage)
        let_in(fleet, ThreadId.of(ours["thr"]), "atlas", write=True)
        agents_part = let_in(fleet, ThreadId.of(hidden["thr"]), "atlas", write=True)
        asking = Asking(TwoTeams(stage, ours, {}), hidden)
        for part in (hidden["par"], agents_part):
            await stage.do("threads.revoke", thread_id=hidden["thr"], participant_id=part)

        for asked in FIELDS:
            for who in (OLE, "atlas"):
                if asked.kind.prefix in hidden and may_ask(who, asked):
                    await asking.about(asked, who)

    assert not asking.told_apart, "\n".join(asking.told_apart)


def rows_of_neighbours(story: Fleet) -> list[tuple[object, ...]]:
    """A fingerprint of every table, as far as it is theirs."""
    tables = story.execute(
        "select c.relname from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'team_id'"
        " where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace order by 1"
    )
    team = story.team_id(NEIGHBOURS)
    prints = (
        f"select '{table}', md5(coalesce(string_agg(t::text, ' ' order by t::text), '')) from {table} t"
        f" where team_id = '{team.hex}'"
        for (table,) in tables
    )
    return story.execute(" union all ".join(prints))
