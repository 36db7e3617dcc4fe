"""Asking another agent, and waiting for what becomes of it."""

from agent_console.agent.held import HeldJob
from agent_console.agent.line import Line
from agent_console.domain.delegation import Delegation, DelegationAsked, DelegationState, NewDelegation
from agent_console.domain.ids import AgentId, RunId, ThreadId
from agent_console.domain.states import RUN_MOVES, is_final
from agent_console.repository.operations.runs import RUNS_DELEGATE, RUNS_OUTCOME


async def ask_another(
    line: Line, to: AgentId, thread_id: ThreadId, words: str, key: str, parent_run_id: RunId | None
) -> Delegation:
    request = NewDelegation(
        to=to, thread_id=thread_id, input=words, idempotency_key=key, parent_run_id=parent_run_id
    )
    return await line.insist(RUNS_DELEGATE, lambda: request)


async def until_settled(held: HeldJob, delegation: Delegation) -> Delegation:
    """Until the other agent has ended, or a person or time has said no."""
    while not _is_settled(delegation):
        delegation = await _following(held, delegation)
    return delegation


async def _following(held: HeldJob, seen: Delegation) -> Delegation:
    """An approval leads to its run, so it is asked for as long as there is one."""
    approval_id = None if seen.approval is None else seen.approval.id
    run_id = seen.run.id if approval_id is None and seen.run is not None else None
    asked = DelegationAsked(
        run_id=run_id, approval_id=approval_id, seen=seen.mark, wait_seconds=held.pace.outcome_seconds
    )
    return await held.line.insist(RUNS_OUTCOME, lambda: asked)


def _is_settled(delegation: Delegation) -> bool:
    match delegation.state:
        case DelegationState.WAITING:
            return False
        case DelegationState.ALLOWED:
            return delegation.run is not None and is_final(RUN_MOVES, delegation.run.status)
        case _:
            return True
