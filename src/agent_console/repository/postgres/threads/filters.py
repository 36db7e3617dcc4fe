"""What a filter says of threads."""

from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, or_, select, text

from agent_console.database.tables import approvals, runs, thread_participants
from agent_console.domain.filters import Filter
from agent_console.domain.ids import AgentId, TeamId, ThreadId
from agent_console.domain.threads import THREAD_FILTERS, Archived, ThreadQuery, ThreadStatus, WaitsFor
from agent_console.repository.postgres.filter_terms import either, ids_said, of_age, with_words_or_id
from agent_console.repository.postgres.registry.agent_words import AgentsSaid, agents_said
from agent_console.repository.postgres.walked_pages import there_is
from agent_console.repository.postgres.work import Work

ARCHIVED_ARE = {Archived.NO: (False,), Archived.YES: (False, True), Archived.ONLY: (True,)}

# Written out, so that runs_open_idx and approvals_pending_thread_idx are seen to fit.
# What has expired waits no longer.
WAITS = {
    WaitsFor.RUN: (runs, text("runs.ended_at is null")),
    WaitsFor.APPROVAL: (approvals, text("approvals.state = 'pending' and approvals.expires_at > now()")),
}


@dataclass(frozen=True)
class ThreadMatch:
    """What a filter says of threads; agents are told by their ids."""

    asked: Filter
    agents: AgentsSaid = field(default_factory=AgentsSaid)

    @property
    def ids(self) -> tuple[ThreadId, ...]:
        return ids_said(self.asked, ThreadId)

    @property
    def waits_for(self) -> tuple[WaitsFor, ...]:
        return tuple(map(WaitsFor, self.asked.wanted("waiting")))

    def holds(self, team_id: TeamId, found: Any) -> ColumnElement[bool]:
        """Of the columns of a thread; whether it is archived is told by `archived_are`."""
        asked = self.asked
        taking_part = [there_is(_parts(team_id, found.id, self.agents.wanted))] if self.agents.wanted else []
        waits = [_waits_in(what, team_id, found.id) for what in self.waits_for]
        return and_(
            either(found.visibility, asked.wanted("visibility"), asked.unwanted("visibility")),
            of_age(asked, found.created_at),
            with_words_or_id(asked, ThreadId, found.id, found.title),
            *taking_part,
            *(~there_is(_parts(team_id, found.id, (agent_id,))) for agent_id in self.agents.unwanted),
            *([or_(*waits)] if waits else []),
            *(~_waits_in(what, team_id, found.id) for what in asked.unwanted("waiting")),
        )


def waiting(what: WaitsFor, team_id: TeamId) -> tuple[Select[Any], ColumnElement[Any]]:
    """The threads in which something waits, each as often as it does, and the column by which they are told."""
    table, waits = WAITS[what]
    key = table.c.thread_id
    return select(key.label("id")).where(table.c.team_id == team_id, waits), key


def _waits_in(what: str, team_id: TeamId, thread_id: ColumnElement[Any]) -> ColumnElement[bool]:
    rows, key = waiting(WaitsFor(what), team_id)
    return there_is(rows.where(key == thread_id).correlate_except(key.table))


def _parts(team_id: TeamId, thread_id: ColumnElement[Any], agents: tuple[AgentId, ...]) -> Select[Any]:
    """By thread_participants_agent_uq."""
    members = thread_participants.alias("part")
    return (
        select(members.c.thread_id)
        .where(
            members.c.team_id == team_id,
            members.c.thread_id == thread_id,
            text("part.participant_type = 'agent'"),
            members.c.agent_id.in_(agents),
        )
        .correlate_except(members)
    )


def archived_are(query: ThreadQuery, match: ThreadMatch | None) -> tuple[bool, ...]:
    """Which are listed: archived ones only for whoever asks for them, by field or by filter."""
    allowed = ARCHIVED_ARE[query.archived]
    if match is None:
        return allowed
    wanted, unwanted = match.asked.wanted("status"), match.asked.unwanted("status")
    if query.archived is Archived.NO and (wanted or unwanted):
        allowed = ARCHIVED_ARE[Archived.YES]
    status = {False: ThreadStatus.OPEN.value, True: ThreadStatus.ARCHIVED.value}
    return tuple(
        archived
        for archived in allowed
        if (not wanted or status[archived] in wanted) and status[archived] not in unwanted
    )


def archived_is(archived: tuple[bool, ...], archived_at: ColumnElement[Any]) -> ColumnElement[bool]:
    return or_(*(archived_at.is_not(None) if one else archived_at.is_(None) for one in archived))


async def thread_match(work: Work, text: str) -> ThreadMatch:
    """The filter with its agents looked up."""
    asked = THREAD_FILTERS.read(text)
    return ThreadMatch(asked, await agents_said(work, asked, "agent"))
