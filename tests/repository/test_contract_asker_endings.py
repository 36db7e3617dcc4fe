"""What becomes of what an agent asked for and was let into, when it is deleted or its run is over."""

import pytest

from agent_console.domain.agents import AgentAsked
from agent_console.domain.approvals import ApprovalAsked, Approving
from agent_console.domain.errors import Conflict
from agent_console.domain.runs import RunAsked, RunCancelling
from agent_console.domain.states import ApprovalState
from agent_console.repository.operations.agents import AGENTS_DELETE
from agent_console.repository.operations.approvals import APPROVALS_APPROVE, APPROVALS_GET
from agent_console.repository.operations.runs import RUNS_CANCEL, RUNS_GET
from tests.support.asking import ANA, OLE, Callers, add_route, asks, count, started, trail
from tests.support.conversations import add_thread, let_in
from tests.support.fleet import Fleet


@pytest.mark.rule("R002-52")
async def test_what_a_deleted_agent_asked_for_stays_with_its_name(crew: Callers, fleet: Fleet) -> None:
    thread_id, ana, atlas = add_thread(fleet), await crew.person(), await crew.agent("atlas")
    let_in(fleet, thread_id, "atlas", write=True)
    add_route(fleet, "atlas", "beacon")
    asked = await asks(atlas, fleet, thread_id)
    assert asked.run is not None

    await ana.call(AGENTS_DELETE, AgentAsked(agent_id=fleet.agent_id("atlas")))

    kept = await ana.call(RUNS_GET, RunAsked(run_id=asked.run.id))
    assert (kept.requested_by, kept.requested_by_agent_id) == ("atlas", asked.run.requested_by_agent_id)


@pytest.mark.rule("U002-7", "U002-9")
async def test_the_trail_tells_of_each_route_and_each_thread_that_a_deleted_agent_leaves(
    crew: Callers, fleet: Fleet
) -> None:
    thread_id, ana, atlas = add_thread(fleet), await crew.person(), fleet.agent_id("atlas")
    member = let_in(fleet, thread_id, "atlas")
    pairs = (("atlas", "beacon"), ("beacon", "atlas"))
    routes = {add_route(fleet, *pair, version=4): pair for pair in pairs}

    await ana.call(AGENTS_DELETE, AgentAsked(agent_id=atlas))

    told = fleet.execute("select action, resource_id, metadata, reason, thread_id from audit_log order by seq")
    removed = [
        ("a2a.route.delete", str(route_id), _ids_of(fleet, *pair) | {"version": 5, "old_policy": "allowed"})
        for route_id, pair in sorted(routes.items())
    ]
    assert told[:-1] == [
        *((*route, "agent deleted", None) for route in removed),
        ("thread.acl.revoke", str(member), {"user_id": None, "agent_id": str(atlas)}, "agent deleted", thread_id),
    ]
    assert told[-1][0] == "agent.deleted"


def _ids_of(fleet: Fleet, asks: str, asked: str) -> dict[str, object]:
    return {"from_agent_id": str(fleet.agent_id(asks)), "to_agent_id": str(fleet.agent_id(asked))}


async def test_nobody_approves_what_a_run_asked_for_that_is_over(crew: Callers, fleet: Fleet) -> None:
    thread_id, ana, ole = add_thread(fleet, ANA, visibility="shared"), await crew.person(), await crew.person(OLE)
    let_in(fleet, thread_id, "atlas", write=True)
    add_route(fleet, "atlas", "beacon", "requires_human_approval")
    run = await started(ana, fleet, thread_id)
    made = (await asks(await crew.agent("atlas"), fleet, thread_id)).approval
    assert made is not None
    asked = await ole.call(APPROVALS_GET, ApprovalAsked(approval_id=made.id))
    await ana.call(RUNS_CANCEL, RunCancelling(run_id=run.id, reason="not needed"))

    with pytest.raises(Conflict, match="the run that asked ended before it was decided"):
        await ole.call(APPROVALS_APPROVE, Approving(approval_id=asked.id, digest_seen=asked.digest))

    ended = await ole.call(APPROVALS_GET, ApprovalAsked(approval_id=asked.id))
    assert (asked.parent_run_id, ended.state) == (run.id, ApprovalState.WITHDRAWN)
    assert trail(fleet, "approval.%") == [("approval.withdraw", "agent-console", "block")]
    assert count(fleet, "runs") == [1]
