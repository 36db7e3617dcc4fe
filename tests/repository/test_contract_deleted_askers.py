"""What an agent has asked of others outlives the agent."""

import pytest

from agent_console.domain.agents import AgentAsked
from agent_console.domain.runs import RunAsked
from agent_console.repository.operations.agents import AGENTS_DELETE
from agent_console.repository.operations.runs import RUNS_GET
from tests.support.asking import Callers, add_route, asks
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
