"""What a filter says of approvals."""

from dataclasses import dataclass, field

from sqlalchemy import ColumnElement, FromClause, and_

from agent_console.domain.approvals import APPROVAL_FILTERS
from agent_console.domain.errors import Invalid
from agent_console.domain.filters import Filter
from agent_console.domain.ids import ApprovalId, TeamId, ThreadId
from agent_console.domain.states import ApprovalState
from agent_console.repository.postgres.filter_terms import agent_name, either, ids_said, of_age, with_words_or_id
from agent_console.repository.postgres.registry.agent_words import AgentsSaid, agents_said
from agent_console.repository.postgres.threads.access import thread_access
from agent_console.repository.postgres.work import Work


@dataclass(frozen=True)
class ApprovalMatch:
    """What a filter says of approvals; agents are told by their ids."""

    asked: Filter = field(default_factory=Filter)
    asking: AgentsSaid = field(default_factory=AgentsSaid)
    asked_of: AgentsSaid = field(default_factory=AgentsSaid)

    @property
    def ids(self) -> tuple[ApprovalId, ...]:
        return ids_said(self.asked, ApprovalId)

    def holds(self, team_id: TeamId, rows: FromClause) -> ColumnElement[bool]:
        asked, found = self.asked, rows.c
        names = (agent_name(team_id, found.from_agent_id), agent_name(team_id, found.to_agent_id))
        wanted, unwanted = (tuple(map(ThreadId.parse, said("thread"))) for said in (asked.wanted, asked.unwanted))
        return and_(
            either(found.state, asked.wanted("status"), asked.unwanted("status")),
            either(found.from_agent_id, self.asking.wanted, self.asking.unwanted),
            either(found.to_agent_id, self.asked_of.wanted, self.asked_of.unwanted),
            either(found.thread_id, wanted, unwanted),
            of_age(asked, found.created_at),
            with_words_or_id(asked, ApprovalId, found.id, *names),
        )


async def approval_match(work: Work, text: str | None, listed: frozenset[ApprovalState]) -> ApprovalMatch:
    """The filter with its agents looked up. One for a state that is never in the list is a mistake."""
    if text is None:
        return ApprovalMatch()
    asked = APPROVAL_FILTERS.read(text)
    wanted = frozenset(map(ApprovalState, asked.wanted("status")))
    if wanted and not wanted & listed:
        raise _never_here(wanted, listed)
    for thread_id in map(ThreadId.parse, asked.wanted("thread")):
        await thread_access(work, thread_id)
    return ApprovalMatch(asked, await agents_said(work, asked, "from"), await agents_said(work, asked, "to"))


def _never_here(wanted: frozenset[ApprovalState], listed: frozenset[ApprovalState]) -> Invalid:
    said = " ".join(f"status:{state.value}" for state in sorted(wanted))
    here = ", ".join(state.value for state in ApprovalState if state in listed)
    return Invalid(
        f"{said} finds nothing in this list, where all are {here}.",
        hint="What waits and what was decided are two lists: approvals list, approvals history.",
        details={"field": "filter"},
    )
