"""Approvals as they are shown: with the names of who asks whom, and of who decided."""

from typing import Any
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Integer,
    RowMapping,
    Select,
    Subquery,
    and_,
    bindparam,
    case,
    cast,
    func,
    select,
)

from agent_console.database.tables import agents, approvals, runs, settings, threads, users
from agent_console.domain.approvals import BEGINS, Approval, ApprovalBrief, ApprovalListed
from agent_console.domain.errors import ConsoleError, NotFound
from agent_console.domain.ids import AgentId, ApprovalId, ThreadId, UserId
from agent_console.domain.kinds import ParticipantType
from agent_console.domain.states import ApprovalState
from agent_console.domain.team_settings import MAX_HOPS
from agent_console.repository.postgres.work import Work

# What is over is over, also before somebody has come by to write it down.
STATE = case(
    (
        and_(approvals.c.state == ApprovalState.PENDING.value, approvals.c.expires_at <= func.now()),
        ApprovalState.EXPIRED.value,
    ),
    else_=approvals.c.state,
).label("state")

LISTED = tuple(
    STATE if name == "state" else approvals.c[name] for name in ApprovalListed.model_fields if name in approvals.c
)
WHOLE = (*LISTED, approvals.c.envelope)


def with_names(page: Subquery, *order: ColumnElement[Any]) -> Select[Any]:
    """Names by key, only for the rows of one page. Who was deleted keeps the name."""
    asking, asked, whole = agents.alias("asking"), agents.alias("asked"), approvals.alias("whole")
    joined = (
        page.join(whole, and_(whole.c.team_id == page.c.team_id, whole.c.id == page.c.id))
        .outerjoin(asking, and_(asking.c.team_id == page.c.team_id, asking.c.id == page.c.from_agent_id))
        .outerjoin(asked, and_(asked.c.team_id == page.c.team_id, asked.c.id == page.c.to_agent_id))
        .outerjoin(users, and_(users.c.team_id == page.c.team_id, users.c.id == page.c.decided_by_user_id))
    )
    return (
        select(
            page,
            asking.c.name.label("from_agent"),
            asked.c.name.label("to_agent"),
            users.c.full_name.label("decided_by"),
            func.left(func.coalesce(whole.c.envelope["input"].astext, ""), BEGINS).label("begins"),
            _max_hops(page).label("max_hops"),
        )
        .select_from(joined)
        .order_by(*order)
    )


def _max_hops(page: Subquery) -> ColumnElement[int]:
    stored = (
        select(cast(settings.c.value, Integer))
        .where(settings.c.team_id == page.c.team_id, settings.c.name == MAX_HOPS.name)
        .scalar_subquery()
    )
    return func.coalesce(stored, MAX_HOPS.default)


# Made once: putting such a statement together takes longer than asking it.
ONE_APPROVAL = with_names(
    select(approvals.c.team_id, *WHOLE)
    .where(approvals.c.team_id == bindparam("of_team"), approvals.c.id == bindparam("of_approval"))
    .subquery()
)


async def _one_approval(work: Work, approval_id: ApprovalId) -> RowMapping:
    facts = {"of_team": work.caller.team_id, "of_approval": approval_id}
    found: RowMapping = (await work.connection.execute(ONE_APPROVAL, facts)).mappings().one()
    return found


async def approval_of(work: Work, approval_id: ApprovalId) -> Approval:
    """Whoever asks for it has been let into its thread already."""
    found = await _one_approval(work, approval_id)
    person = await person_behind(work, found["trace_id"])
    behind = {"begun_by_user_id": None, "begun_by": None} if person is None else person
    around = {
        "path": await _names(work, found["delegation_path"]),
        "thread": await _title(work, found["thread_id"]),
    }
    return Approval.model_validate(dict(found) | behind | around)


async def _names(work: Work, path: list[str]) -> tuple[str, ...]:
    """Of those on the path, in its order; who was deleted keeps the name."""
    wanted = select(agents.c.id, agents.c.name).where(
        agents.c.team_id == work.caller.team_id, agents.c.id.in_([AgentId.parse(agent) for agent in path])
    )
    names = {str(AgentId.of(row.id)): row.name for row in await work.connection.execute(wanted)}
    return tuple(names.get(agent, agent) for agent in path)


async def _title(work: Work, thread_id: ThreadId) -> str | None:
    wanted = select(threads.c.title).where(threads.c.team_id == work.caller.team_id, threads.c.id == thread_id)
    title: str | None = (await work.connection.execute(wanted)).scalar()
    return title


async def brief_of(work: Work, approval_id: ApprovalId) -> ApprovalBrief:
    return ApprovalBrief.model_validate(dict(await _one_approval(work, approval_id)))


async def person_behind(work: Work, trace_id: UUID) -> dict[str, Any] | None:
    """Whose wish began the whole matter. Served by runs_trace_idx; only the first run of a trace is a person's."""
    wanted = (
        select(users.c.id.label("begun_by_user_id"), users.c.full_name.label("begun_by"))
        .join(runs, and_(runs.c.team_id == users.c.team_id, runs.c.requested_by_user_id == users.c.id))
        .where(
            runs.c.team_id == work.caller.team_id,
            runs.c.trace_id == trace_id,
            runs.c.requested_by_type == ParticipantType.HUMAN.value,
        )
        .order_by(runs.c.seq)
        .limit(1)
    )
    found = (await work.connection.execute(wanted)).mappings().first()
    return None if found is None else dict(found)


async def person_id_behind(work: Work, trace_id: UUID) -> UserId | None:
    person = await person_behind(work, trace_id)
    return None if person is None else UserId.of(person["begun_by_user_id"])


def no_approval(approval_id: ApprovalId) -> ConsoleError:
    return NotFound(
        f"There is no approval {approval_id} that you may read.", hint="List them: agent-console approvals list"
    )
