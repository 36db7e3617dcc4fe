"""How many runs a thread may have at once, and who is told what."""

import pytest

from agent_console.domain.errors import RateLimited
from agent_console.domain.messages import NewMessage
from agent_console.domain.runs import (
    RunCancelling,
)
from agent_console.repository.operations.messages import MESSAGES_POST
from agent_console.repository.operations.runs import (
    RUNS_CANCEL,
)
from tests.support.asking import (
    OLE,
    Callers,
    count,
    set_setting,
    started,
    trail,
)
from tests.support.conversations import add_thread
from tests.support.fleet import Fleet


@pytest.mark.rule("U002-14", "U002-15")
async def test_a_thread_has_only_so_many_open_runs_and_the_refusal_is_kept(crew: Callers, fleet: Fleet) -> None:
    thread_id, ole = add_thread(fleet), await crew.person(OLE)
    set_setting(fleet, "runs_per_thread", 2)
    run = await started(ole, fleet, thread_id)
    await started(ole, fleet, thread_id, "beacon")

    with pytest.raises(RateLimited, match="2 runs are open") as refused:
        await started(ole, fleet, thread_id, "cartographer")

    assert refused.value.details["rule"] == "runs_per_thread"
    assert count(fleet, "runs") == [2]
    assert trail(fleet, "run.policy%") == [("run.policy.blocked", "Ole Berg", "block")]
    await ole.call(RUNS_CANCEL, RunCancelling(run_id=run.id))
    await started(ole, fleet, thread_id, "cartographer")


@pytest.mark.rule("U002-14", "R002-20")
async def test_who_asks_more_agents_at_once_than_may_run_is_told_that_before_anything_is_said(
    crew: Callers, fleet: Fleet
) -> None:
    thread_id, ole = add_thread(fleet), await crew.person(OLE)
    set_setting(fleet, "runs_per_thread", 2)
    three = tuple(fleet.agent_id(name) for name in ("atlas", "beacon", "cartographer"))

    with pytest.raises(RateLimited, match=r"^This asks 3 agents: 0 runs are open") as refused:
        await ole.call(MESSAGES_POST, NewMessage(thread_id=thread_id, content="all of you", to=three))
    await ole.call(MESSAGES_POST, NewMessage(thread_id=thread_id, content="you two", to=three[:2]))

    assert refused.value.details == {"rule": "runs_per_thread", "open_runs": 0, "limit": 2}
    assert (count(fleet, "messages"), count(fleet, "runs")) == ([1], [2])
    assert trail(fleet, "run.policy%") == [("run.policy.blocked", "Ole Berg", "block")]
