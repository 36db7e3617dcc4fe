"""Agents that do not register themselves: hosted ones, and those another registry knows."""

from datetime import datetime
from typing import Any

from sqlalchemy import Row, func, insert, select, update

from agent_console.database.tables import agent_runtime, agents, users
from agent_console.domain.agent_changes import AgentImport
from agent_console.domain.agents import Agent
from agent_console.domain.audit import Facts
from agent_console.domain.errors import Conflict, NotFound
from agent_console.domain.hosted import HostedAgent, NewHostedAgent
from agent_console.domain.ids import AgentId, UserId
from agent_console.domain.kinds import UserKind
from agent_console.domain.secrets import Secret
from agent_console.domain.states import Lifecycle, Presence
from agent_console.domain.team_settings import HOSTED_PER_OWNER
from agent_console.repository.operations.agents import (
    AGENT_HOSTED,
    AGENT_IMPORTED,
    AGENTS_HOST,
    AGENTS_IMPORT,
)
from agent_console.repository.postgres.registry.agent_changes import (
    change,
    locked_agent,
    name_system_user,
    shown,
    tell,
)
from agent_console.repository.postgres.registry.worker_tokens import end_worker_tokens
from agent_console.repository.postgres.team_settings import setting_value
from agent_console.repository.postgres.work import Work, answers

IMPORTED = ("name", "hostname", "os_info", "version", "connector_ref", "profile", "max_concurrent_jobs")


@answers(AGENTS_HOST)
async def host_agent(work: Work, new: NewHostedAgent) -> HostedAgent:
    await _require_room(work)
    agent_id = AgentId.new()
    key = Secret.mint(work.caller.team_id, agent_id)
    spec = new.model_dump()
    at = await _make(work, agent_id, key, spec | {"hosted": True, "worker_id": str(agent_id)}, work.caller.user_id)
    await work.connection.execute(
        insert(agent_runtime).values(
            team_id=work.caller.team_id,
            agent_id=agent_id,
            presence=Presence.OFFLINE.value,
            lifecycle=Lifecycle.PROVISIONING,
            lifecycle_changed_at=func.now(),
        )
    )
    facts = {"cpu_millicores": new.cpu_millicores, "memory_mb": new.memory_mb}
    await tell(work, AGENT_HOSTED, agent_id, at, facts)
    return HostedAgent(agent=await shown(work, agent_id), secret=key.word)


async def _require_room(work: Work) -> None:
    """Whoever makes agents for one owner at the same time queues up at the owner's row, and counts after it.

    Served by agents_owner_idx.
    """
    mine = (users.c.team_id == work.caller.team_id, users.c.id == work.caller.user_id)
    await work.connection.execute(select(users.c.id).where(*mine).with_for_update(key_share=True))
    hosted = select(func.count()).where(
        agents.c.team_id == work.caller.team_id,
        agents.c.owner_user_id == work.caller.user_id,
        agents.c.deleted_at.is_(None),
        agents.c.hosted,
    )
    quota = await setting_value(work.connection, work.caller.team_id, HOSTED_PER_OWNER)
    if (await work.connection.execute(hosted)).scalar_one() >= quota:
        raise Conflict(
            f"You own {quota} hosted agents, and that is the most one person may.",
            hint="Delete one that is stopped or in error.",
            details={"quota": quota},
        )


async def _make(
    work: Work, agent_id: AgentId, key: Secret, values: dict[str, Any], owner_user_id: UserId
) -> datetime:
    """The agent and the system user it acts as."""
    team_id, system_user_id = work.caller.team_id, UserId.new()
    await work.connection.execute(
        insert(users).values(
            team_id=team_id,
            id=system_user_id,
            kind=UserKind.SYSTEM.value,
            full_name=f"Agent: {values['name']}",
            created_by_user_id=work.caller.user_id,
        )
    )
    made = await work.connection.execute(
        insert(agents)
        .values(
            team_id=team_id,
            id=agent_id,
            owner_user_id=owner_user_id,
            system_user_id=system_user_id,
            created_by_user_id=work.caller.user_id,
            api_key_hash=key.hash,
            api_key_prefix=key.shown_prefix,
            **values,
        )
        .returning(agents.c.created_at)
    )
    at: datetime = made.scalar_one()
    return at


@answers(AGENTS_IMPORT)
async def import_agent(work: Work, given: AgentImport) -> Agent:
    """Put the agent in its place: made if it is new, replaced where it differs. Its key is minted later."""
    owner_user_id = given.owner or work.caller.user_id
    await _require_person(work, owner_user_id)
    values = given.model_dump(include=set(IMPORTED)) | {"worker_id": given.worker_id or str(given.agent_id)}
    known = await _known(work, given.agent_id)
    if known is None:
        # Nobody has ever seen this key; rotating it gives the agent one of its own.
        key = Secret.mint(work.caller.team_id, given.agent_id)
        at = await _make(work, given.agent_id, key, values, owner_user_id)
        await end_worker_tokens(work, values["worker_id"])
        await work.connection.execute(
            insert(agent_runtime).values(
                team_id=work.caller.team_id, agent_id=given.agent_id, capabilities=list(given.capabilities)
            )
        )
        replaced = False
    elif not await _replace(work, known, given, values, owner_user_id):
        return await shown(work, given.agent_id)
    else:
        at, replaced = known.at, True
    facts: Facts = {"owner_user_id": str(owner_user_id), "replaced": replaced}
    await tell(work, AGENT_IMPORTED, given.agent_id, at, facts)
    return await shown(work, given.agent_id)


async def _require_person(work: Work, user_id: UserId) -> None:
    person = select(users.c.id).where(
        users.c.team_id == work.caller.team_id, users.c.id == user_id, users.c.kind == UserKind.HUMAN.value
    )
    if (await work.connection.execute(person)).first() is None:
        raise NotFound(
            f"There is no person {user_id}.",
            hint="List them: agent-console users list",
            details={"field": "owner"},
        )


async def _known(work: Work, agent_id: AgentId) -> Row[Any] | None:
    any_state = select(agents.c.deleted_at).where(agents.c.team_id == work.caller.team_id, agents.c.id == agent_id)
    found = (await work.connection.execute(any_state)).first()
    if found is None:
        return None
    if found.deleted_at is not None:
        raise Conflict(f"Agent {agent_id} was deleted.", hint="Import it with a new id.")
    return await locked_agent(work, agent_id)


async def _replace(
    work: Work, known: Row[Any], given: AgentImport, values: dict[str, Any], owner_user_id: UserId
) -> bool:
    """Whether anything was different."""
    wanted = values | {"owner_user_id": owner_user_id}
    different = {name: value for name, value in wanted.items() if getattr(known, name) != value}
    able = tuple(known.capabilities) != given.capabilities
    if able:
        await work.connection.execute(
            update(agent_runtime)
            .where(agent_runtime.c.team_id == work.caller.team_id, agent_runtime.c.agent_id == given.agent_id)
            .values(capabilities=list(given.capabilities))
        )
    if different or able:
        await change(work, given.agent_id, **different)
    if "worker_id" in different:
        await end_worker_tokens(work, known.worker_id, values["worker_id"])
    if "name" in different:
        await name_system_user(work, known.system_user_id, given.name)
    return bool(different or able)
