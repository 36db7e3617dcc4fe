"""A person decides: one transaction, in which everything the decision rests on is held as it is.

Locks are taken in one order everywhere, so that nobody waits in a circle: the person, the thread, the two agents,
the route between them, the approval. Exactly one of any number of deciders finds it pending.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue
from sqlalchemy import Row, func, select, text, update

from agent_console.database.tables import approvals, users
from agent_console.domain.approvals import Approval, Approving, Rejecting
from agent_console.domain.audit import SYSTEM, AuditEvent
from agent_console.domain.delegation import digest_of
from agent_console.domain.errors import Conflict, ConsoleError, Forbidden, Internal, NotFound
from agent_console.domain.ids import AgentId, ApprovalId, MessageId, RunId, ThreadId, UserId
from agent_console.domain.kinds import Decision, RoutePolicy
from agent_console.domain.lane_words import NAME_SHOWN
from agent_console.domain.permissions import Permission, Role, require_permission
from agent_console.domain.records import shown_time
from agent_console.domain.safe_text import shortened
from agent_console.domain.states import ApprovalState
from agent_console.repository.operations.approvals import (
    APPROVAL_APPROVED,
    APPROVAL_REFUSED,
    APPROVAL_REJECTED,
    APPROVALS_APPROVE,
    APPROVALS_REJECT,
)
from agent_console.repository.operations.messages import MESSAGE_CREATED
from agent_console.repository.port import Topic
from agent_console.repository.postgres import audit
from agent_console.repository.postgres.own_pace import answers_at_own_pace
from agent_console.repository.postgres.policy.approval_endings import (
    AGENT_GONE,
    EXPIRED,
    ITS_RUN_IS_OVER,
    ROUTE_CHANGED,
    RUN_OVER,
    Ending,
    end_approvals,
    facts_of,
)
from agent_console.repository.postgres.policy.approval_records import approval_of, no_approval, person_id_behind
from agent_console.repository.postgres.policy.delegation import agent_says
from agent_console.repository.postgres.policy.delegation_facts import Pair, Route, locked_pair, locked_route
from agent_console.repository.postgres.runs.beginning import RunWanted, begin_run, require_room
from agent_console.repository.postgres.settled import Settled
from agent_console.repository.postgres.threads.access import Access, thread_access
from agent_console.repository.postgres.threads.locked_thread import locked_access
from agent_console.repository.postgres.threads.saying import post_system_message
from agent_console.repository.postgres.told_refusals import telling_refusals
from agent_console.repository.postgres.work import Work

if TYPE_CHECKING:
    from agent_console.repository.postgres.repository import PostgresRepository

Deciding = Approving | Rejecting

LOOK = text("""
    select a.thread_id, a.from_agent_id, a.to_agent_id, a.state, a.decided_at, a.decided_by_user_id,
           a.decision_reason, u.full_name as decided_by
      from approvals a
      left join users u on u.team_id = a.team_id and u.id = a.decided_by_user_id
     where a.team_id = :team_id and a.id = :id
""")


@answers_at_own_pace(APPROVALS_APPROVE)
async def approve(repository: "PostgresRepository", asked: Approving) -> Approval:
    return (await telling_refusals(repository, APPROVALS_APPROVE, settle_approval, asked)).answer_or_refuse()


@answers_at_own_pace(APPROVALS_REJECT)
async def reject(repository: "PostgresRepository", asked: Rejecting) -> Approval:
    return (await telling_refusals(repository, APPROVALS_REJECT, settle_rejection, asked)).answer_or_refuse()


async def settle_approval(work: Work, asked: Approving) -> Settled[Approval]:
    held = await _hold(work, asked.approval_id, APPROVALS_APPROVE.name)
    if (refused := await _refused(work, held, asked)) is not None:
        return refused
    if not (held.pair.from_able and held.pair.to_able):
        return await _ended(work, held, AGENT_GONE)
    if held.route is None or held.route.policy is RoutePolicy.BLOCKED:
        return await _ended(work, held, ROUTE_CHANGED)
    await require_room(work, held.access, held.pair.to_agent_id)
    made = await _begin(work, held, held.route)
    return await _decided(work, held, asked, ApprovalState.APPROVED, made)


async def settle_rejection(work: Work, asked: Rejecting) -> Settled[Approval]:
    held = await _hold(work, asked.approval_id, APPROVALS_REJECT.name)
    if (refused := await _refused(work, held, asked)) is not None:
        return refused
    return await _decided(work, held, asked, ApprovalState.REJECTED)


@dataclass(frozen=True)
class _Held:
    """The request and what its decision rests on. `clock` was read after the wait for the row."""

    access: Access
    pair: Pair
    route: Route | None
    row: Row[Any]
    clock: datetime

    @property
    def id(self) -> ApprovalId:
        return ApprovalId.of(self.row.id)


async def _hold(work: Work, approval_id: ApprovalId, operation: str) -> _Held:
    """What was decided never changes: the many who come too late are told so before they wait for anything."""
    look = {"team_id": work.caller.team_id, "id": approval_id}
    found = (await work.connection.execute(LOOK, look)).first()
    if found is None:
        raise no_approval(approval_id)
    thread_id = ThreadId.of(found.thread_id)
    try:
        await thread_access(work, thread_id)
        _require_undecided(found)
        await _require_reviewer(work, operation)
        access = await locked_access(work, thread_id)
    except NotFound as unreadable:
        raise no_approval(approval_id) from unreadable
    _require_undecided((await work.connection.execute(LOOK, look)).one())
    pair = await locked_pair(work, AgentId.of(found.from_agent_id), AgentId.of(found.to_agent_id))
    route = await locked_route(work, pair.from_agent_id, pair.to_agent_id)
    this = approvals.c.team_id == work.caller.team_id, approvals.c.id == approval_id
    row = (await work.connection.execute(select(approvals).where(*this).with_for_update())).one()
    clock = (await work.connection.execute(select(func.clock_timestamp()))).scalar_one()
    return _Held(access, pair, route, row, clock)


async def _require_reviewer(work: Work, operation: str) -> None:
    """The right as it is now, held: who is demoted or deactivated while others decide does not slip through."""
    wanted = (
        select(users.c.role, users.c.is_active)
        .where(users.c.team_id == work.caller.team_id, users.c.id == work.caller.user_id)
        .with_for_update(read=True)
    )
    person = (await work.connection.execute(wanted)).one()
    if work.caller.agent_id is not None or not person.is_active:
        raise Forbidden("Only an active person decides.", hint="Ask an operator or an administrator to decide.")
    require_permission(Role(person.role), Permission.DECIDE_APPROVALS, operation)


async def _refused(work: Work, held: _Held, asked: Deciding) -> Settled[Approval] | None:
    """What stands in the way of any decision, in the order in which it is asked."""
    row = held.row
    if row.state != ApprovalState.PENDING.value:
        return await _too_late(work, held)
    if row.expires_at <= held.clock:
        return await _ended(work, held, EXPIRED)
    if await _nobody_waits(work, held):
        return await _ended(work, held, RUN_OVER)
    if asked.digest_seen != row.digest:
        return await _blocked(
            work,
            held,
            "digest",
            Conflict(
                "What you read is not what this approval is about.",
                hint="Read it again before you decide.",
                details={"rule": "digest", "digest": row.digest},
            ),
        )
    if digest_of(row.envelope) != row.digest:
        changed = Conflict(
            "The request was changed after it was made; it can't be decided.",
            hint="Tell an administrator: somebody wrote to the database by hand.",
            details={"rule": "envelope"},
        )
        return await _blocked(work, held, "envelope", changed)
    if await person_id_behind(work, row.trace_id) == work.caller.user_id:
        own = Forbidden(
            "You began this yourself; somebody else has to decide it.",
            hint="Ask another operator or an administrator.",
            details={"rule": "four_eyes"},
        )
        return await _blocked(work, held, "four_eyes", own)
    return None


async def _nobody_waits(work: Work, held: _Held) -> bool:
    of_this = approvals.c.team_id == work.caller.team_id, approvals.c.id == held.id
    found = await work.connection.execute(select(approvals.c.id).where(*of_this, ITS_RUN_IS_OVER))
    return found.first() is not None


def _require_undecided(found: Row[Any]) -> None:
    """Whoever comes second is told who was first, what was decided, and when."""
    if found.state == ApprovalState.PENDING.value:
        return
    at = shown_time(found.decided_at)
    by = None if found.decided_by_user_id is None else str(UserId.of(found.decided_by_user_id))
    if found.decided_by is not None:
        sentence = f"{found.decided_by} {found.state} it at {at}."
    else:
        sentence = f"It is {found.state} since {at}: {found.decision_reason}."
    raise Conflict(
        sentence,
        hint="Nothing more can be decided about it.",
        details={
            "state": found.state,
            "decided_by": found.decided_by,
            "decided_by_user_id": by,
            "decided_at": at,
        },
    )


async def _ended(work: Work, held: _Held, ending: Ending) -> Settled[Approval]:
    """It ends here, by what time or somebody else has changed; the decision comes too late."""
    of_this = approvals.c.id == held.id
    await end_approvals(work.connection, work.caller.team_id, SYSTEM, held.access.at, ending, of_this)
    _announce(work, held)
    return await _too_late(work, held)


def _announce(work: Work, held: _Held) -> None:
    thread_id, agent_id = held.access.thread_id, held.pair.from_agent_id
    work.announce(Topic.APPROVALS, held.id, thread_id=thread_id, agent_id=agent_id)


async def _too_late(work: Work, held: _Held) -> Settled[Approval]:
    look = {"team_id": work.caller.team_id, "id": held.id}
    try:
        _require_undecided((await work.connection.execute(LOOK, look)).one())
    except Conflict as refusal:
        return Settled[Approval](refusal=refusal)
    raise Internal("The approval still waits.")


async def _blocked(work: Work, held: _Held, rule: str, refusal: ConsoleError) -> Settled[Approval]:
    """It goes on waiting; that somebody tried is kept."""
    event = AuditEvent(
        APPROVAL_REFUSED,
        "approval",
        str(held.id),
        metadata=facts_of(held.row) | {"rule": rule},
        decision=Decision.BLOCK,
        reason=refusal.message,
        thread_id=held.access.thread_id,
    )
    await audit.append(work, event, held.access.at)
    return Settled[Approval](refusal=refusal)


async def _begin(work: Work, held: _Held, route: Route) -> tuple[RunId, MessageId]:
    """The run that was asked for: exactly the words that were read, on the path that was asked on."""
    row = held.row
    message_id = await agent_says(
        work,
        held.access,
        author=(held.pair.from_agent_id, held.pair.from_name),
        to_agent_id=held.pair.to_agent_id,
        content=row.envelope["input"],
        run_id=row.parent_run_id,
    )
    run_id = await begin_run(
        work,
        held.access,
        RunWanted(
            target_agent_id=held.pair.to_agent_id,
            input_message_id=message_id,
            trace_id=row.trace_id,
            requested_by_agent_id=held.pair.from_agent_id,
            behind_it=await person_id_behind(work, row.trace_id),
            parent_run_id=row.parent_run_id,
            delegation_path=tuple(AgentId.parse(agent) for agent in row.delegation_path),
            request_digest=row.request_digest,
            route_version=route.version,
        ),
    )
    return run_id, message_id


async def _decided(
    work: Work, held: _Held, asked: Deciding, state: ApprovalState, made: tuple[RunId, MessageId] | None = None
) -> Settled[Approval]:
    """Written last, with everything that follows from it, or not at all."""
    run_id, message_id = made or (None, None)
    await work.connection.execute(
        update(approvals)
        .where(approvals.c.team_id == work.caller.team_id, approvals.c.id == held.id)
        .values(
            state=state.value,
            decided_by_user_id=work.caller.user_id,
            decided_at=func.now(),
            decision_reason=asked.reason,
            run_id=run_id,
            input_message_id=message_id,
        )
    )
    approved = state is ApprovalState.APPROVED
    event = AuditEvent(
        APPROVAL_APPROVED if approved else APPROVAL_REJECTED,
        "approval",
        str(held.id),
        metadata=facts_of(held.row) | {"policy_version": None if held.route is None else held.route.version},
        decision=Decision.ALLOW if approved else Decision.BLOCK,
        reason=asked.reason,
        thread_id=held.access.thread_id,
        run_id=run_id,
    )
    await audit.append(work, event, held.access.at)
    await _tell_thread(work, held, state)
    _announce(work, held)
    return Settled[Approval](answer=await approval_of(work, held.id))


async def _tell_thread(work: Work, held: _Held, state: ApprovalState) -> None:
    """Whoever reads the thread sees that a person stepped in, and where."""
    who, asker, asked = (
        shortened(name or "an agent", NAME_SHOWN)
        for name in (work.caller.name, held.pair.from_name, held.pair.to_name)
    )
    words = f"{who} {state.value} what {asker} asked of {asked}."
    thread_id, connection, team_id = held.access.thread_id, work.connection, work.caller.team_id
    facts: dict[str, JsonValue] = {"approval_id": str(held.id), "state": state.value}
    message_id = await post_system_message(connection, team_id, thread_id, words, payload=facts)
    event = AuditEvent(MESSAGE_CREATED, "message", str(message_id), thread_id=thread_id)
    await audit.append_for(connection, team_id, SYSTEM, event, held.access.at)
    work.announce(Topic.MESSAGES, thread_id)
