"""The story of a job. Whoever adds a line holds the job's lock, so that lines are seen in the order of `seq`."""

from typing import Any

from sqlalchemy import Select, and_, select

from agent_console.database.tables import job_events, jobs, users
from agent_console.domain.ids import TeamId
from agent_console.domain.job_events import JobEvent, JobEventQuery
from agent_console.domain.kinds import EventLevel
from agent_console.domain.records import Page
from agent_console.repository.operations.job_acts import JOBS_EVENTS
from agent_console.repository.postgres.queue.job_changes import no_job
from agent_console.repository.postgres.work import Work, answers

WORSE = {
    EventLevel.INFO: (),
    EventLevel.WARN: (EventLevel.WARN.value, EventLevel.ERROR.value),
    EventLevel.ERROR: (EventLevel.ERROR.value,),
}


def story(team_id: TeamId, query: JobEventQuery) -> Select[Any]:
    """One page in the order of job_events_pkey or job_events_worse_idx, with the names of the writers."""
    lines = select(job_events).where(job_events.c.team_id == team_id, job_events.c.job_id == query.job_id)
    if query.after_seq is not None:
        lines = lines.where(job_events.c.seq > query.after_seq)
    if query.before_seq is not None:
        lines = lines.where(job_events.c.seq < query.before_seq)
    if query.level is not None and (levels := WORSE[query.level]):
        lines = lines.where(job_events.c.level != EventLevel.INFO.value, job_events.c.level.in_(levels))
    page = (
        lines.order_by(job_events.c.seq.desc() if query.newest else job_events.c.seq)
        .limit(query.limit + 1)
        .subquery()
    )
    writer = and_(users.c.team_id == page.c.team_id, users.c.id == page.c.created_by_user_id)
    named = select(page, users.c.full_name.label("created_by")).select_from(page.outerjoin(users, writer))
    return named.order_by(page.c.seq.desc() if query.newest else page.c.seq)


@answers(JOBS_EVENTS)
async def list_events(work: Work, query: JobEventQuery) -> Page[JobEvent]:
    team_id = work.caller.team_id
    known = select(jobs.c.id).where(jobs.c.team_id == team_id, jobs.c.id == query.job_id)
    if (await work.connection.execute(known)).first() is None:
        raise no_job(query.job_id)
    rows = (await work.connection.execute(story(team_id, query))).mappings().all()
    shown = rows[: query.limit]
    following = str(shown[-1]["seq"]) if len(rows) > query.limit else None
    return Page[JobEvent].model_validate({"items": [dict(row) for row in shown], "next": following})
