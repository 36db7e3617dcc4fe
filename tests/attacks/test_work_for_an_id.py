"""An id of another team is answered after the same work as the id of nothing: no clock tells them apart."""

from collections.abc import AsyncIterator, Callable
from itertools import count

import pytest

from tests.attacks.asked_about import FIELDS, ROLES, may_ask
from tests.attacks.counted_work import Statement, counted_work
from tests.attacks.test_ids_of_another_team import Asking
from tests.attacks.two_teams import TwoTeams, two_teams
from tests.support.fleet import Fleet

# Who cleans up chooses the moment, and a table that was tidied is read in other steps. A plan that is made for
# certain values, until PostgreSQL has seen a statement often enough, may be another from one question to the next.
ALWAYS_ALIKE = """
    do $$
    declare each regclass;
    begin
        for each in select oid from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r' loop
            execute format('alter table %%s set (autovacuum_enabled = off)', each);
        end loop;
        execute format('alter database %%I set plan_cache_mode = force_generic_plan', current_database());
    end $$
"""


# Each time leaves one agent more, for the next to walk over.
GROWING = {"agents.import agent_id"}


@pytest.fixture
async def teams(story: Fleet, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[TwoTeams]:
    story.execute(ALWAYS_ALIKE)
    async with two_teams(story, monkeypatch) as both:
        yield both


@pytest.mark.rule("U000-33")
async def test_no_more_is_looked_at_for_an_id_of_another_team_than_for_none(
    teams: TwoTeams, record_property: Callable[[str, object], None]
) -> None:
    asking, different, numbers = Asking(teams, teams.theirs), list[str](), count(1)
    with counted_work() as work:
        for asked in FIELDS:
            theirs = teams.theirs[asked.kind.prefix]
            for who in (name for name in ROLES if may_ask(name, asked)):
                # Nobody has an id right beside theirs, and who looks for it in an index comes by the same way.
                beside = asked.kind(int=theirs.int ^ next(numbers))
                # The first time of all is another matter: much is read only then.
                await asking.answer(asked, who, asked.kind.new())
                of_nothing, of_theirs = list[Statement](), list[Statement]()
                await asking.answer(asked, who, beside, work.counting(of_nothing))
                await asking.answer(asked, who, theirs, work.counting(of_theirs))
                if asked.name in GROWING:
                    of_nothing, of_theirs = words_of(of_nothing), words_of(of_theirs)
                if of_nothing != of_theirs:
                    different.append(told(f"{who}: {asked.name}", of_nothing, of_theirs))
    record_property("tried", next(numbers) - 1)
    assert not different, "\n".join(different)


def words_of(statements: list[Statement]) -> list[Statement]:
    return [(words, brought, ()) for words, brought, _ in statements]


def told(what: str, of_nothing: list[Statement], of_theirs: list[Statement]) -> str:
    only = [f"  nothing: {each}" for each in of_nothing if each not in of_theirs]
    return "\n".join((what, *only, *(f"  theirs:  {each}" for each in of_theirs if each not in of_nothing)))
