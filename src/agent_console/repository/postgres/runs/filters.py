"""Runs by a filter: which stretch of which index is walked for it, and what of that is kept."""

from dataclasses import dataclass, field

from sqlalchemy import BIGINT, ColumnElement, FromClause, ScalarSelect, and_, func, literal, select

from agent_console.database.tables import runs
from agent_console.domain.filters import Filter, Filterable
from agent_console.domain.ids import RunId, TeamId, ThreadId
from agent_console.domain.states import RunStatus
from agent_console.repository.postgres.filter_terms import (
    AGE,
    CLOCKS_APART_SECONDS,
    agent_name,
    either,
    first_id,
    ids_said,
    of_age,
    with_words_or_id,
)
from agent_console.repository.postgres.registry.agent_words import AgentsSaid, agents_said
from agent_console.repository.postgres.threads.access import thread_access
from agent_console.repository.postgres.work import Work

ERROR_READ = 500
# Seqs are given in the order of time, but for those of transactions that were under way together.
SEQS_APART = 1_000
LAST_SEQ = 2**62


@dataclass(frozen=True)
class RunMatch:
    """What a filter says of runs; agents are told by their ids."""

    asked: Filter = field(default_factory=Filter)
    agents: AgentsSaid = field(default_factory=AgentsSaid)

    @property
    def ids(self) -> tuple[RunId, ...]:
        return ids_said(self.asked, RunId)

    @property
    def states(self) -> tuple[RunStatus, ...]:
        return tuple(map(RunStatus, self.asked.wanted("status")))

    @property
    def threads(self) -> tuple[ThreadId, ...]:
        return tuple(map(ThreadId.parse, self.asked.wanted("thread")))

    def holds(self, team_id: TeamId, rows: FromClause) -> ColumnElement[bool]:
        asked, found = self.asked, rows.c
        error = func.left(found.error_message, ERROR_READ)
        named = agent_name(team_id, found.target_agent_id)
        not_threads = tuple(map(ThreadId.parse, asked.unwanted("thread")))
        return and_(
            either(found.status, asked.wanted("status"), asked.unwanted("status")),
            either(found.target_agent_id, self.agents.wanted, self.agents.unwanted),
            either(found.thread_id, self.threads, not_threads),
            of_age(asked, found.created_at),
            with_words_or_id(asked, RunId, found.id, named, found.error_code, error),
        )

    def stretch(self, team_id: TeamId) -> list[ColumnElement[bool]]:
        """Of an index in the order of seq only what can be of that age; by runs_pkey, whose ids tell the time."""
        parts: list[ColumnElement[bool]] = []
        if (seconds := self.asked.older_than(AGE)) is not None:
            later = _seq_beside(team_id, seconds - CLOCKS_APART_SECONDS, later=True)
            parts.append(runs.c.seq < func.coalesce(later + SEQS_APART, literal(LAST_SEQ, BIGINT)))
        if (seconds := self.asked.younger_than(AGE)) is not None:
            earlier = _seq_beside(team_id, seconds + CLOCKS_APART_SECONDS, later=False)
            parts.append(runs.c.seq > func.coalesce(earlier - SEQS_APART, literal(0, BIGINT)))
        return parts


def _seq_beside(team_id: TeamId, seconds_ago: int, *, later: bool) -> ScalarSelect[int]:
    """Of the run that was the first after that moment, or the last before it."""
    beside = runs.alias("beside")
    then, id = first_id(seconds_ago), beside.c.id
    wanted = select(beside.c.seq).where(beside.c.team_id == team_id, id >= then if later else id < then)
    return wanted.order_by(id if later else id.desc()).limit(1).scalar_subquery()


async def run_match(work: Work, filters: Filterable, text: str | None) -> RunMatch:
    """The filter with its agents looked up; a thread that the caller may not read is as if there were none."""
    if text is None:
        return RunMatch()
    asked = filters.read(text)
    match = RunMatch(asked, await agents_said(work, asked, "agent"))
    for thread_id in match.threads:
        await thread_access(work, thread_id)
    return match
