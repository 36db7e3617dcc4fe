"""The next rows of a log, read by the operations that page through it, with all their rules."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel
from sqlalchemy import select

from agent_console.database.tables import approvals, audit_heads
from agent_console.domain.approvals import ApprovalListed, ApprovalQuery
from agent_console.domain.audit_trail import AuditFilter, AuditTail
from agent_console.domain.ids import ApprovalId
from agent_console.domain.job_events import JobEventQuery
from agent_console.domain.messages import MessageQuery
from agent_console.domain.records import Nothing, Record
from agent_console.repository.logs import Followed, Log, LogName
from agent_console.repository.operations.approvals import APPROVAL_REFUSED, APPROVALS_LIST
from agent_console.repository.operations.audit_trail import AUDIT_SEAL, AUDIT_TAIL
from agent_console.repository.operations.job_acts import JOBS_EVENTS
from agent_console.repository.operations.messages import MESSAGES_LIST
from agent_console.repository.postgres.audit.tail import LOOKED_AT, sealed_acts
from agent_console.repository.postgres.policy.approval_records import LISTED, with_names
from agent_console.repository.postgres.threads.access import may_read
from agent_console.repository.postgres.work import Work

if TYPE_CHECKING:
    from agent_console.repository.postgres.repository import PostgresRepository

AT_ONCE = 200


@dataclass(frozen=True)
class Part:
    """Some rows with their positions; everything up to `reached` was looked at."""

    reached: int
    rows: tuple[Followed[BaseModel], ...] = ()
    more: bool = False


async def _messages(reading: "PostgresRepository", log: Log[Any], after: int | None) -> Part:
    asked = {"thread_id": log.thread_id}
    if after is None:
        newest = await reading.call(MESSAGES_LIST, MessageQuery.model_validate(asked | {"limit": 1}))
        return Part(reached=newest.next_after_seq or 0)
    query = MessageQuery.model_validate(asked | {"after_seq": after, "limit": AT_ONCE})
    page = await reading.call(MESSAGES_LIST, query)
    rows = tuple(Followed(message.seq, message) for message in page.items)
    return Part(rows[-1].position if rows else after, rows, more=page.next is not None)


async def _job_events(reading: "PostgresRepository", log: Log[Any], after: int | None) -> Part:
    asked = {"job_id": log.job_id}
    if after is None:
        query = JobEventQuery.model_validate(asked | {"newest": True, "limit": 1})
        newest = (await reading.call(JOBS_EVENTS, query)).items
        return Part(reached=newest[0].seq if newest else 0)
    query = JobEventQuery.model_validate(asked | {"after_seq": after, "limit": AT_ONCE})
    page = await reading.call(JOBS_EVENTS, query)
    rows = tuple(Followed(event.seq, event) for event in page.items)
    return Part(rows[-1].position if rows else after, rows, more=page.next is not None)


async def _audit(reading: "PostgresRepository", log: Log[Any], after: int | None) -> Part:
    if after is None:
        return Part(reached=(await reading.call(AUDIT_SEAL, Nothing())).position)
    page = await reading.call(AUDIT_TAIL, AuditTail(after_position=after, limit=AT_ONCE))
    rows = tuple(Followed(row.position, row) for row in page.items if row.position is not None)
    return Part(page.position, rows, more=page.next is not None)


async def _approvals(reading: "PostgresRepository", log: Log[Any], after: int | None) -> Part:
    position = None if after is None else str(after)
    found = await reading.in_one_transaction(
        APPROVALS_LIST, _approvals_after, ApprovalQuery(after=position, limit=AT_ONCE)
    )
    rows = tuple(Followed(place, approval) for place, approval in found.approvals)
    return Part(found.reached, rows, more=found.more)


class _Approvals(Record):
    reached: int
    approvals: tuple[tuple[int, ApprovalListed], ...] = ()
    more: bool = False


async def _approvals_after(work: Work, query: ApprovalQuery) -> _Approvals:
    """Here `after` is a position of the sealed trail, which tells of every request and every ending."""
    end = select(audit_heads.c.position).where(audit_heads.c.team_id == work.caller.team_id)
    head = int((await work.connection.execute(end)).scalar() or 0)
    if query.after is None:
        return _Approvals(reached=head)
    after = int(query.after)
    upto = max(after, min(after + LOOKED_AT, head))
    wanted = sealed_acts(work.caller, AuditFilter(resource_type="approval"), after, upto, query.limit)
    acts = (await work.connection.execute(wanted)).all()
    places = [
        (int(act.position), ApprovalId.parse(act.resource_id)) for act in acts if act.action != APPROVAL_REFUSED
    ]
    found = await _seen_approvals(work, {approval_id for _, approval_id in places})
    seen = tuple((position, found[approval_id]) for position, approval_id in places if approval_id in found)
    reached = int(acts[-1].position) if len(acts) == query.limit else upto
    return _Approvals(reached=reached, approvals=seen, more=reached < head)


async def _seen_approvals(work: Work, ids: set[ApprovalId]) -> Mapping[ApprovalId, ApprovalListed]:
    """As they are now, and only those that the caller may see."""
    if not ids:
        return {}
    wanted = select(approvals.c.team_id, *LISTED).where(
        approvals.c.team_id == work.caller.team_id,
        approvals.c.id.in_(ids),
        may_read(work.caller, approvals.c.thread_id),
    )
    if work.caller.agent_id is not None:
        wanted = wanted.where(approvals.c.from_agent_id == work.caller.agent_id)
    rows = (await work.connection.execute(with_names(wanted.subquery()))).mappings()
    listed = [ApprovalListed.model_validate(dict(row)) for row in rows]
    return {approval.id: approval for approval in listed}


Read = Callable[["PostgresRepository", Log[Any], int | None], Awaitable[Part]]

READ: Mapping[LogName, Read] = {
    LogName.MESSAGES: _messages,
    LogName.JOB_EVENTS: _job_events,
    LogName.APPROVALS: _approvals,
    LogName.AUDIT: _audit,
}
