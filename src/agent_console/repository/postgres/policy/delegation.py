"""One agent asks another: decided, done and written down in one transaction, refusals too."""

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import JsonValue
from sqlalchemy import func, insert

from agent_console.database.tables import approvals
from agent_console.domain.approvals import ENVELOPE_FORM
from agent_console.domain.audit import Actor, AuditEvent, Facts
from agent_console.domain.delegation import (
    UNDECIDED,
    Delegation,
    NewDelegation,
    Outcome,
    Rule,
    Verdict,
    decide,
    digest_of,
)
from agent_console.domain.errors import ConsoleError, Forbidden, JSONValue, NotFound, RateLimited
from agent_console.domain.ids import AgentId, ApprovalId, MessageId, RunId
from agent_console.domain.kinds import ActorType, Decision
from agent_console.domain.team_settings import APPROVAL_EXPIRY_MINUTES
from agent_console.repository.operations.messages import MESSAGE_CREATED
from agent_console.repository.operations.runs import (
    DELEGATION_ALLOWED,
    DELEGATION_BLOCKED,
    DELEGATION_RATE_LIMITED,
    DELEGATION_REQUESTED,
    RUNS_DELEGATE,
)
from agent_console.repository.port import Topic
from agent_console.repository.postgres import audit
from agent_console.repository.postgres.database_time import minutes, transaction_time
from agent_console.repository.postgres.identify import revoked_agent
from agent_console.repository.postgres.own_pace import answers_at_own_pace
from agent_console.repository.postgres.policy.approval_records import person_id_behind
from agent_console.repository.postgres.policy.delegation_facts import (
    Earlier,
    Gathered,
    Pair,
    Route,
    asked_before,
    gather,
    locked_pair,
)
from agent_console.repository.postgres.policy.outcomes import delegation_of
from agent_console.repository.postgres.runs.beginning import RunWanted, begin_run, key_in_use
from agent_console.repository.postgres.settled import Settled
from agent_console.repository.postgres.team_settings import setting_value
from agent_console.repository.postgres.threads.access import Access
from agent_console.repository.postgres.threads.locked_thread import locked_access
from agent_console.repository.postgres.threads.saying import Words, say
from agent_console.repository.postgres.work import Work

if TYPE_CHECKING:
    from agent_console.repository.postgres.repository import PostgresRepository

ACTIONS = {
    Outcome.ALLOWED: DELEGATION_ALLOWED,
    Outcome.WAITING: DELEGATION_REQUESTED,
    Outcome.BLOCKED: DELEGATION_BLOCKED,
    Outcome.RATE_LIMITED: DELEGATION_RATE_LIMITED,
    Outcome.REPEATED: DELEGATION_RATE_LIMITED,
}
HINTS = {
    Rule.ROUTE: "Only an administrator changes routes.",
    Rule.NO_ROUTE: "An administrator has to open a route first.",
    Rule.RUNS_PER_THREAD: "Wait for a run of the thread to end.",
    Rule.TARGET: "Ask an agent that is there; your operator knows which.",
    Rule.PARENT: "Leave parent_run_id out: it is known which run you work on.",
    Rule.PATH: "Answer the run yourself: it has come by that agent already.",
    Rule.HOPS: "Answer the run yourself: it can't be passed on any further.",
    Rule.ERROR: "Try again; if it stays so, tell an operator.",
    Rule.WAITING_PER_AGENT: "Wait until a person has decided some of them.",
}


@answers_at_own_pace(RUNS_DELEGATE)
async def delegate(repository: "PostgresRepository", asked: NewDelegation) -> Delegation:
    settled = await repository.in_one_transaction(RUNS_DELEGATE, settle_delegation, asked)
    return settled.answer_or_refuse()


async def settle_delegation(work: Work, asked: NewDelegation) -> Settled[Delegation]:
    agent_id = work.caller.agent_id
    if agent_id is None:
        raise Forbidden("Only an agent delegates.", hint="Use the agent's own key.")
    try:
        access = await locked_access(work, asked.thread_id)
        access.require_write()
    except ConsoleError as refusal:
        return await _refused_at_the_door(work, asked, agent_id, refusal)
    if asked.idempotency_key is not None:
        same, earlier = await asked_before(work, asked, agent_id)
        if not same:
            raise key_in_use()
        if earlier is not None:
            return Settled[Delegation](answer=await _first_answer(work, earlier))
    pair = await locked_pair(work, agent_id, asked.to)
    if not pair.from_able:
        raise revoked_agent()
    gathered, verdict = await _judged(work, access, asked, pair)
    return await _Asking(work, access, asked, pair, gathered, verdict).settle()


async def _judged(work: Work, access: Access, asked: NewDelegation, pair: Pair) -> tuple[Gathered | None, Verdict]:
    """An error while deciding is a block; what it broke is undone, so that the block can be written down."""
    try:
        async with work.connection.begin_nested():
            gathered = await gather(work, access, asked, pair)
            return gathered, decide(gathered.facts)
    except Exception:
        logging.getLogger("agent_console.policy").exception("a request from agent to agent could not be decided")
        return None, UNDECIDED


async def _first_answer(work: Work, earlier: Earlier) -> Delegation:
    return await delegation_of(work, earlier.run_id, earlier.approval_id, repeated=True)


async def _refused_at_the_door(
    work: Work, asked: NewDelegation, agent_id: AgentId, refusal: ConsoleError
) -> Settled[Delegation]:
    """Who may not write to the thread is told what everybody is told there; the trail keeps that it was tried."""
    at = await transaction_time(work.connection)
    event = AuditEvent(
        DELEGATION_BLOCKED,
        "agent",
        str(asked.to),
        metadata={"from_agent_id": str(agent_id), "to_agent_id": str(asked.to), "rule": Rule.ACCESS.value},
        decision=Decision.BLOCK,
        reason="The asking agent may not write to this thread.",
        thread_id=asked.thread_id,
    )
    await audit.append(work, event, at)
    return Settled[Delegation](refusal=refusal)


@dataclass(frozen=True)
class _Asking:
    """One request after it was judged."""

    work: Work
    access: Access
    asked: NewDelegation
    pair: Pair
    gathered: Gathered | None
    verdict: Verdict

    async def settle(self) -> Settled[Delegation]:
        match self.verdict.outcome, self.gathered:
            case Outcome.ALLOWED, Gathered() as gathered:
                run_id = await self._begin(gathered)
                await self._tell("run", str(run_id), run_id=run_id)
                return Settled[Delegation](answer=await delegation_of(self.work, run_id, None))
            case Outcome.WAITING, Gathered(route=Route() as route) as gathered:
                approval_id, digest = await self._ask_a_person(gathered, route)
                await self._tell("approval", str(approval_id), {"digest": digest})
                return Settled[Delegation](answer=await delegation_of(self.work, None, approval_id))
            case Outcome.REPEATED, Gathered(earlier=Earlier() as earlier):
                await self._tell("agent", str(self.asked.to), run_id=earlier.run_id)
                return Settled[Delegation](answer=await _first_answer(self.work, earlier))
            case _:
                await self._tell("agent", str(self.asked.to))
                return Settled[Delegation](refusal=self._refusal())

    async def _begin(self, gathered: Gathered) -> RunId:
        parent_run_id = None if gathered.parent is None else gathered.parent.run_id
        message_id = await agent_says(
            self.work,
            self.access,
            author=(self.pair.from_agent_id, self.pair.from_name),
            to_agent_id=self.asked.to,
            content=self.asked.input,
            run_id=parent_run_id,
        )
        return await begin_run(
            self.work,
            self.access,
            RunWanted(
                target_agent_id=self.asked.to,
                input_message_id=message_id,
                trace_id=gathered.trace_id,
                requested_by_agent_id=self.pair.from_agent_id,
                behind_it=await person_id_behind(self.work, gathered.trace_id),
                parent_run_id=parent_run_id,
                delegation_path=gathered.facts.path,
                idempotency_key=self.asked.idempotency_key,
                request_digest=gathered.digest,
                route_version=self.verdict.policy_version,
            ),
        )

    async def _ask_a_person(self, gathered: Gathered, route: Route) -> tuple[ApprovalId, str]:
        approval_id, team_id = ApprovalId.new(), self.work.caller.team_id
        waits_minutes = await setting_value(self.work.connection, team_id, APPROVAL_EXPIRY_MINUTES)
        envelope = self._envelope(approval_id, gathered, route)
        digest = digest_of(envelope)
        await self.work.connection.execute(
            insert(approvals).values(
                team_id=team_id,
                id=approval_id,
                thread_id=self.access.thread_id,
                from_agent_id=self.pair.from_agent_id,
                to_agent_id=self.asked.to,
                route_id=route.id,
                route_version=route.version,
                parent_run_id=None if gathered.parent is None else gathered.parent.run_id,
                trace_id=gathered.trace_id,
                delegation_path=[str(agent_id) for agent_id in gathered.facts.path],
                envelope=envelope,
                digest=digest,
                expires_at=func.now() + minutes(waits_minutes),
                idempotency_key=self.asked.idempotency_key,
                request_digest=gathered.digest,
            )
        )
        self.work.announce(
            Topic.APPROVALS, approval_id, thread_id=self.access.thread_id, agent_id=self.pair.from_agent_id
        )
        return approval_id, digest

    def _envelope(self, approval_id: ApprovalId, gathered: Gathered, route: Route) -> dict[str, JsonValue]:
        """Everything that is asked for and nothing else. Its own id makes its digest that of no other request."""
        return {
            "form": ENVELOPE_FORM,
            "approval_id": str(approval_id),
            "from": {"id": str(self.pair.from_agent_id), "name": self.pair.from_name},
            "to": {"id": str(self.asked.to), "name": self.pair.to_name},
            "thread_id": str(self.access.thread_id),
            "parent_run_id": None if gathered.parent is None else str(gathered.parent.run_id),
            "trace_id": str(gathered.trace_id),
            "delegation_path": [str(agent_id) for agent_id in gathered.facts.path],
            "route": {"id": str(route.id), "version": route.version},
            "input": self.asked.input,
        }

    async def _tell(self, kind: str, what: str, more: Facts | None = None, *, run_id: RunId | None = None) -> None:
        gathered = self.gathered
        parent = None if gathered is None or gathered.parent is None else str(gathered.parent.run_id)
        facts: Facts = {
            "from_agent_id": str(self.pair.from_agent_id),
            "to_agent_id": str(self.asked.to),
            "rule": self.verdict.rule.value,
            "policy_version": self.verdict.policy_version,
            "parent_run_id": parent,
            "trace_id": None if gathered is None else str(gathered.trace_id),
        }
        event = AuditEvent(
            ACTIONS[self.verdict.outcome],
            kind,
            what,
            metadata=facts | (more or {}),
            decision=self._decision(),
            reason=self.verdict.sentence,
            thread_id=self.access.thread_id,
            run_id=run_id,
        )
        await audit.append(self.work, event, self.access.at)

    def _decision(self) -> Decision | None:
        if self.verdict.rule is Rule.ERROR:
            return Decision.ERROR
        match self.verdict.outcome:
            case Outcome.ALLOWED:
                return Decision.ALLOW
            case Outcome.WAITING:
                return None
            case _:
                return Decision.BLOCK

    def _refusal(self) -> ConsoleError:
        verdict = self.verdict
        kind: type[ConsoleError] = Forbidden
        if verdict.rule in (Rule.TARGET, Rule.PARENT):
            kind = NotFound
        elif verdict.outcome is Outcome.RATE_LIMITED:
            kind = RateLimited
        details: dict[str, JSONValue] = {"rule": verdict.rule.value, "policy_version": verdict.policy_version}
        return kind(verdict.sentence, hint=HINTS.get(verdict.rule, ""), details=details)


async def agent_says(
    work: Work,
    access: Access,
    *,
    author: tuple[AgentId, str],
    to_agent_id: AgentId,
    content: str,
    run_id: RunId | None,
) -> MessageId:
    """The words of a request that may be made, as the asking agent's message in the thread."""
    actor = Actor(ActorType.AGENT, None, author[1], author[0])
    words = Words(content, run_id=run_id, to_agent_ids=(to_agent_id,))
    said = await say(work.connection, work.caller.team_id, access.thread_id, actor, words)
    event = AuditEvent(
        MESSAGE_CREATED,
        "message",
        str(said.id),
        metadata={"recipients": 1, "broadcast": False, "intervention": False},
        thread_id=access.thread_id,
        run_id=run_id,
    )
    await audit.append_for(work.connection, work.caller.team_id, actor, event, access.at)
    work.announce(Topic.MESSAGES, access.thread_id)
    return said.id
