"""Runs as they are shown: with the names of who asked and who acts, and the job that does it."""

from typing import Any

from sqlalchemy import Select, Subquery, and_, bindparam, func, select

from agent_console.database.tables import agents, jobs, runs, users
from agent_console.domain.errors import ConsoleError, NotFound
from agent_console.domain.ids import RunId
from agent_console.domain.runs import Run
from agent_console.repository.postgres.threads.access import Access, thread_access
from agent_console.repository.postgres.work import Work

RUN_COLUMNS = tuple(runs.c[name] for name in Run.model_fields if name in runs.c)


def with_names(page: Subquery) -> Select[Any]:
    """Names and job by key, only for the rows of one page. Who was deleted keeps the name; old jobs are gone."""
    target, asking = agents.alias("target"), agents.alias("asking")
    joined = (
        page.outerjoin(target, and_(target.c.team_id == page.c.team_id, target.c.id == page.c.target_agent_id))
        .outerjoin(asking, and_(asking.c.team_id == page.c.team_id, asking.c.id == page.c.requested_by_agent_id))
        .outerjoin(users, and_(users.c.team_id == page.c.team_id, users.c.id == page.c.requested_by_user_id))
        .outerjoin(jobs, and_(jobs.c.team_id == page.c.team_id, jobs.c.run_id == page.c.id))
    )
    return (
        select(
            page,
            target.c.name.label("target"),
            func.coalesce(users.c.full_name, asking.c.name).label("requested_by"),
            jobs.c.id.label("job_id"),
            jobs.c.cancel_requested_at,
        )
        .select_from(joined)
        .order_by(page.c.seq.desc())
    )


# Made once: putting such a statement together takes longer than asking it.
ONE_RUN = with_names(
    select(runs.c.team_id, *RUN_COLUMNS)
    .where(runs.c.team_id == bindparam("of_team"), runs.c.id == bindparam("of_run"))
    .subquery()
)


async def run_of(work: Work, run_id: RunId) -> Run:
    """Whoever asks for it has been let into its thread already."""
    found = await work.connection.execute(ONE_RUN, {"of_team": work.caller.team_id, "of_run": run_id})
    return Run.model_validate(dict(found.mappings().one()))


async def readable_run(work: Work, run_id: RunId) -> tuple[Run, Access]:
    """A run in a thread that the caller may not read is as if there were none."""
    found = await work.connection.execute(ONE_RUN, {"of_team": work.caller.team_id, "of_run": run_id})
    if (row := found.mappings().first()) is None:
        raise no_run(run_id)
    try:
        access = await thread_access(work, row["thread_id"])
    except NotFound as unreadable:
        raise no_run(run_id) from unreadable
    return Run.model_validate(dict(row)), access


def no_run(run_id: RunId) -> ConsoleError:
    return NotFound(f"There is no run {run_id} that you may read.", hint="List yours: agent-console runs list")
