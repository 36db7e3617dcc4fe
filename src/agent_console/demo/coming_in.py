"""How the demo's fleet comes to be: with the administrator's token, through the operations that everybody has.

It is done at every start and does only what is missing: what an operator has changed since stays changed.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from platform import platform

from agent_console.agent import Pace
from agent_console.agent.keys import KeyFile
from agent_console.agent.registering import register
from agent_console.demo.cast import AGENTS, ASKS, PEOPLE, ROUTES, DemoAgent, DemoPerson, DemoRoute
from agent_console.domain.agent_changes import AgentLimit
from agent_console.domain.agents import AgentQuery
from agent_console.domain.errors import Conflict
from agent_console.domain.ids import AgentId, UserId
from agent_console.domain.records import PAGE_LIMIT_MAX
from agent_console.domain.registration import AgentRegistration, KeyRotation
from agent_console.domain.routes import RouteEdit
from agent_console.domain.secrets import Secret
from agent_console.domain.team_settings import APPROVAL_EXPIRY_MINUTES, JOB_HISTORY_DAYS, SettingChange
from agent_console.domain.tokens import NewOperatorToken, NewRegistrationToken
from agent_console.domain.users import NewUser, UserQuery
from agent_console.repository.operations.agents import AGENTS_LIMIT
from agent_console.repository.operations.credentials import (
    AGENTS_ROTATE_KEY,
    OPERATOR_TOKENS_MINT,
    REGISTRATION_TOKENS_MINT,
)
from agent_console.repository.operations.fleet import AGENTS_LIST
from agent_console.repository.operations.people import SETTINGS_SET, USERS_CREATE, USERS_LIST
from agent_console.repository.operations.routes import ROUTES_PUT
from agent_console.repository.port import Repository

PACE = Pace()
ALL_HERE = "all-here"
# Finished jobs do not pile up, and who waits for a person gives up before the run that asked has to end.
SETTINGS = {JOB_HISTORY_DAYS: 1, APPROVAL_EXPIRY_MINUTES: 25}


@dataclass(frozen=True)
class Keys:
    """The folder with the keys of the demo's agents and of the person who asks them for things."""

    folder: Path

    def of(self, name: str) -> KeyFile:
        return KeyFile(self.folder / f"{name}.key")

    def word(self, name: str) -> str | None:
        path = self.of(name).path
        return path.read_text(encoding="ascii").strip() if path.exists() else None


async def come_in(administrator: Repository, keys: Keys) -> None:
    keys.folder.mkdir(mode=0o700, exist_ok=True)
    all_here = keys.folder / ALL_HERE
    if all_here.exists():
        return
    missing = [agent for agent in AGENTS if keys.word(agent.name) is None]
    await asyncio.gather(_let_people_in(administrator, keys), _let_agents_in(administrator, keys, missing))
    settings = (SettingChange(name=rule.name, value=value) for rule, value in SETTINGS.items())
    await asyncio.gather(
        *(_set_route(administrator, route) for route in ROUTES),
        *(administrator.call(SETTINGS_SET, change) for change in settings),
    )
    all_here.touch(mode=0o600)


def agent_ids(keys: Keys) -> dict[str, AgentId]:
    """By the names they came in with, whatever they are called by now: a key tells whose it is."""
    found: dict[str, AgentId] = {}
    for agent in AGENTS:
        word = keys.word(agent.name)
        owner = None if word is None else Secret.parse(word).owner
        if isinstance(owner, AgentId):
            found[agent.name] = owner
    return found


async def _let_people_in(administrator: Repository, keys: Keys) -> None:
    if keys.word(ASKS.email) is not None:
        return
    ids: dict[str, UserId] = {}
    for person in PEOPLE:
        ids[person.email] = await _person(administrator, person)
    wanted = NewOperatorToken(user_id=ids[ASKS.email], name="the person who asks the demo's agents")
    minted = await administrator.call(OPERATOR_TOKENS_MINT, wanted)
    keys.of(ASKS.email).keep(minted.secret)


async def _person(administrator: Repository, person: DemoPerson) -> UserId:
    new = NewUser(email=person.email, full_name=person.full_name, role=person.role)
    try:
        return (await administrator.call(USERS_CREATE, new)).id
    except Conflict:
        # The last start got as far as this and no further.
        users = await administrator.call(USERS_LIST, UserQuery(limit=PAGE_LIMIT_MAX))
        return next(user.id for user in users.items if user.email == person.email)


async def _let_agents_in(administrator: Repository, keys: Keys, missing: Sequence[DemoAgent]) -> None:
    """One after the other where the order is seen: a list of agents begins with the oldest."""
    minting = (NewRegistrationToken(name=agent.name, hours=1) for agent in missing)
    tokens = await asyncio.gather(*(administrator.call(REGISTRATION_TOKENS_MINT, new) for new in minting))
    limits = [
        AgentLimit(
            agent_id=await _let_agent_in(administrator, keys.of(agent.name), agent, token.secret),
            max_concurrent_jobs=agent.concurrency,
        )
        for agent, token in zip(missing, tokens, strict=True)
    ]
    # Whoever nobody gave a limit works on one job at a time.
    raised = (limit for limit in limits if limit.max_concurrent_jobs > 1)
    await asyncio.gather(*(administrator.call(AGENTS_LIMIT, limit) for limit in raised))


async def _let_agent_in(administrator: Repository, key_file: KeyFile, agent: DemoAgent, token: str) -> AgentId:
    wanted = AgentRegistration(
        token=token,
        nonce=key_file.nonce(),
        name=agent.name,
        hostname=agent.hostname,
        os_info=platform(terse=True),
        version=agent.version,
        capabilities=agent.capabilities,
    )
    try:
        return (await register(administrator, wanted, key_file, pace=PACE)).agent.id
    except Conflict:
        return await _new_key(administrator, key_file, agent)


async def _new_key(administrator: Repository, key_file: KeyFile, agent: DemoAgent) -> AgentId:
    """For one that came in when the last start was cut short before its key was kept."""
    known = await administrator.call(AGENTS_LIST, AgentQuery(limit=PAGE_LIMIT_MAX))
    agent_id = next(one.id for one in known.items if one.name == agent.name)
    key_file.keep((await administrator.call(AGENTS_ROTATE_KEY, KeyRotation(agent_id=agent_id))).secret)
    return agent_id


async def _set_route(administrator: Repository, route: DemoRoute) -> None:
    wanted = RouteEdit(
        from_agent=route.asks,
        to_agent=route.asked,
        policy=route.policy,
        notes=route.notes,
        reason="the policy of the demo",
    )
    try:
        await administrator.call(ROUTES_PUT, wanted)
    except Conflict:
        # There is one already, and it may be an operator's by now.
        return
