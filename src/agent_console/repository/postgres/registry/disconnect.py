"""An agent that ends says so: nobody has to wait until its silence is noticed."""

from typing import Any

from sqlalchemy import Row, text

from agent_console.domain.errors import Forbidden
from agent_console.domain.identity import Caller
from agent_console.domain.ids import AgentId
from agent_console.domain.presence import Disconnected
from agent_console.domain.records import Nothing
from agent_console.domain.states import Lifecycle, Presence
from agent_console.repository.operations.agents import move_action
from agent_console.repository.operations.presence import HEARTBEAT_DISCONNECT
from agent_console.repository.port import Topic
from agent_console.repository.postgres.registry.agent_changes import change, locked_agent, release, tell
from agent_console.repository.postgres.work import Work, answers

ENDED = "the agent disconnected"

# A hosted agent that was asked to stop has done so. One that nobody asked is lost to its users, just as if it had
# fallen silent; one that hibernates, is awaited or has ended already is where it belongs.
LIFECYCLE_AFTER = {
    Lifecycle.RUNNING: Lifecycle.ERROR,
    Lifecycle.IDLE: Lifecycle.ERROR,
    Lifecycle.STOPPING: Lifecycle.STOPPED,
}

# By primary key, the row being locked already. Only who was here can go: the others stay offline or unknown.
LEAVE = text(f"""
    update agent_runtime
       set presence = case when presence in ('online', 'error') then 'offline' else presence end,
           started_at = null,
           lifecycle = :lifecycle,
           lifecycle_changed_at = case when lifecycle is distinct from :lifecycle then now()
                                       else lifecycle_changed_at end,
           error_message = case when :lifecycle = {Lifecycle.ERROR:d}
                                then case lifecycle when {Lifecycle.ERROR:d} then error_message else :ended end end
     where team_id = :team_id and agent_id = :agent_id
""")  # noqa: S608


@answers(HEARTBEAT_DISCONNECT)
async def disconnect(work: Work, asked: Nothing) -> Disconnected:
    """Its sessions stay open, as they do when it falls silent: their owner decides what becomes of them."""
    agent_id = _acting(work.caller)
    agent = await locked_agent(work, agent_id)
    jobs = await release(work, agent_id, ENDED)
    await _leave(work, agent)
    if jobs or agent.presence in (Presence.ONLINE, Presence.ERROR):
        work.announce(Topic.AGENTS, agent_id)
    return Disconnected(at=agent.at, jobs=jobs)


def _acting(caller: Caller) -> AgentId:
    if caller.agent_id is None:
        raise Forbidden("Only an agent can disconnect.", hint="Use the agent's own key.")
    return caller.agent_id


async def _leave(work: Work, agent: Row[Any]) -> None:
    was = None if agent.lifecycle is None else Lifecycle(agent.lifecycle)
    now = None if was is None else LIFECYCLE_AFTER.get(was, was)
    agent_id = AgentId.of(agent.id)
    place = {"team_id": work.caller.team_id, "agent_id": agent_id}
    await work.connection.execute(LEAVE, place | {"lifecycle": None if now is None else int(now), "ended": ENDED})
    if was is not None and now is not None and was is not now:
        await change(work, agent_id)
        facts = {"from": was.name.lower(), "to": now.name.lower()}
        await tell(work, move_action(now), agent_id, agent.at, facts, ENDED)
