"""Agents as people write them: by name, ignoring case, or by agt_ id."""

from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import text

from agent_console.domain.errors import ConsoleError, NotFound, WrongId
from agent_console.domain.filters import Filter
from agent_console.domain.ids import AgentId
from agent_console.domain.safe_text import shortened
from agent_console.repository.postgres.work import Work

WORD_SHOWN = 60

# By agents_name_uq and by key. With the lock nobody deletes one of them before this has ended, and one that was
# being deleted meanwhile is no longer found.
LIVING = """
    select w.word, a.id, a.name
      from unnest(cast(:words as text[])) as w (word)
      join agents a on a.team_id = :team_id and lower(a.name) = lower(w.word) and a.deleted_at is null
     order by a.id
"""
LIVING_BY_ID = """
    select a.id, a.name from agents a
     where a.team_id = :team_id and a.id = any(cast(:ids as uuid[])) and a.deleted_at is null
     order by a.id
"""
EVER_BY_ID = text(
    "select a.id, a.name from agents a where a.team_id = :team_id and a.id = any(cast(:ids as uuid[]))"
)


@dataclass(frozen=True)
class NamedAgent:
    id: AgentId
    name: str


async def agents_called(
    work: Work, words: Iterable[str], *, lock: bool = False, deleted_too: bool = False
) -> dict[str, NamedAgent]:
    """The agent of each word; words that name nobody are left out. A deleted agent is found by id alone."""
    ids: dict[str, AgentId] = {}
    names: list[str] = []
    for word in sorted(set(words)):
        try:
            ids[word] = AgentId.parse(word)
        except WrongId:
            names.append(word)
    locking = " for key share of a" if lock else ""
    facts = {"team_id": work.caller.team_id}
    by_id = EVER_BY_ID if deleted_too else text(LIVING_BY_ID + locking)
    named = await work.connection.execute(text(LIVING + locking), facts | {"words": names})
    found = {row.word: NamedAgent(AgentId.of(row.id), row.name) for row in named} if names else {}
    if ids:
        known = {
            row.id: row.name for row in await work.connection.execute(by_id, facts | {"ids": [*ids.values()]})
        }
        found |= {word: NamedAgent(one, known[one]) for word, one in ids.items() if one in known}
    return found


async def pair_called(
    work: Work, from_word: str, to_word: str, *, lock: bool = False, deleted_too: bool = False
) -> tuple[NamedAgent, NamedAgent]:
    found = await agents_called(work, (from_word, to_word), lock=lock, deleted_too=deleted_too)
    for word in (from_word, to_word):
        if word not in found:
            raise no_agent(word)
    return found[from_word], found[to_word]


@dataclass(frozen=True)
class AgentsSaid:
    """The agents that one qualifier of a filter asks for, and those it does not want."""

    wanted: tuple[AgentId, ...] = ()
    unwanted: tuple[AgentId, ...] = ()


async def agents_said(work: Work, asked: Filter, qualifier: str) -> AgentsSaid:
    """One that nobody is called is a mistake, not an empty list."""
    wanted, unwanted = asked.wanted(qualifier), asked.unwanted(qualifier)
    if not wanted and not unwanted:
        return AgentsSaid()
    found = await agents_called(work, (*wanted, *unwanted), deleted_too=True)
    for word in (*wanted, *unwanted):
        if word not in found:
            raise no_agent(word)
    return AgentsSaid(tuple(found[word].id for word in wanted), tuple(found[word].id for word in unwanted))


def no_agent(agent: AgentId | str) -> ConsoleError:
    return NotFound(
        f"There is no agent {shortened(str(agent), WORD_SHOWN)}.", hint="List them: agent-console agents list"
    )
