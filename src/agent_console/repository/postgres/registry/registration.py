"""How an agent comes in, and how it gets a new key."""

from datetime import datetime
from typing import Any

from sqlalchemy import Row, func, select, text
from sqlalchemy.dialects.postgresql import insert

from agent_console.database.tables import agent_runtime, agents, users
from agent_console.domain.agents import AgentAsked
from agent_console.domain.audit import AuditEvent
from agent_console.domain.errors import Conflict, ConsoleError, Forbidden, Unauthorized
from agent_console.domain.identity import AuthSource, Caller
from agent_console.domain.ids import AgentId, RegistrationTokenId, UserId
from agent_console.domain.permissions import Permission, Role, require_permission
from agent_console.domain.registration import (
    ASK_AGAIN_MINUTES,
    AgentRegistration,
    KeyRotation,
    MintedKey,
    Registered,
)
from agent_console.domain.secrets import Secret, hash_of, same_hash
from agent_console.domain.tokens import RegistrationTokenState
from agent_console.repository.operations.credentials import (
    AGENT_REGISTERED,
    AGENTS_REGISTER,
    AGENTS_ROTATE_KEY,
    KEY_ROTATED,
)
from agent_console.repository.port import Topic
from agent_console.repository.postgres import audit
from agent_console.repository.postgres.identify import NO_HASH
from agent_console.repository.postgres.registry.agent_words import no_agent
from agent_console.repository.postgres.registry.agents import get_agent
from agent_console.repository.postgres.registry.worker_tokens import end_worker_tokens
from agent_console.repository.postgres.work import Work, answers

# By primary key. Whoever comes second with a token waits here, and then sees that it is used.
TOKEN = text("""
    select k.id, k.token_hash, k.is_used, k.used_by_agent_id, k.client_nonce_hash,
           k.used_at > now() - make_interval(mins => :ask_again_minutes) as may_ask_again,
           k.revoked_at is not null as revoked, k.expires_at <= now() as expired,
           u.id as creator_id, u.full_name, u.role, u.is_active, t.slug, now() as at
      from registration_tokens k
      join users u on u.team_id = k.team_id and u.id = k.created_by_user_id
      join teams t on t.id = k.team_id
     where k.team_id = :team_id and k.id = :token_id
       for update of k
""")

USE_TOKEN = text("""
    update registration_tokens
       set is_used = true, used_at = now(), used_by_agent_id = :agent_id, client_nonce_hash = :nonce_hash
     where team_id = :team_id and id = :token_id
""")

# The lost key is dead at once: nobody can have it but whoever read it on its way.
NEW_KEY = text("""
    update agents
       set previous_key_hash = case when :overlap > 0 then api_key_hash end,
           previous_key_ends_at = case when :overlap > 0 then now() + make_interval(secs => :overlap) end,
           api_key_hash = :key_hash, api_key_prefix = :key_prefix,
           updated_by_user_id = :user_id, updated_at = now()
     where team_id = :team_id and id = :agent_id and deleted_at is null and revoked_at is null
 returning updated_at
""")


@answers(AGENTS_REGISTER)
async def register_agent(work: Work, new: AgentRegistration) -> Registered:
    secret = Secret.parse(new.token)
    token = await _genuine(work, secret)
    work.act_as(
        Caller(
            team_id=secret.team_id,
            team=token.slug,
            user_id=UserId.of(token.creator_id),
            name=token.full_name,
            role=token.role,
            auth_source=AuthSource.REGISTRATION_TOKEN,
        )
    )
    if token.is_used:
        agent_id, key = await _asked_again(work, token, new.nonce)
    else:
        _require_usable(token)
        agent_id, key = await _come_in(work, new)
        used = {"agent_id": agent_id, "nonce_hash": hash_of(new.nonce)}
        await work.connection.execute(USE_TOKEN, {"team_id": secret.team_id, "token_id": token.id} | used)
        work.announce(Topic.TOKENS, RegistrationTokenId.of(token.id))
    facts = {
        "registration_token_id": str(RegistrationTokenId.of(token.id)),
        "auth_source": AuthSource.REGISTRATION_TOKEN.value,
        "again": token.is_used,
    }
    await audit.append(work, AuditEvent(AGENT_REGISTERED, "agent", str(agent_id), facts), token.at)
    work.announce(Topic.AGENTS, agent_id)
    return Registered(agent=await get_agent(work, AgentAsked(agent_id=agent_id)), secret=key.word)


async def _genuine(work: Work, secret: Secret) -> Row[Any]:
    """Another kind of secret, an unknown token and a wrong one answer alike, after the same work."""
    parameters = {
        "team_id": secret.team_id,
        "token_id": secret.owner,
        "ask_again_minutes": ASK_AGAIN_MINUTES,
    }
    token = (await work.connection.execute(TOKEN, parameters)).first()
    genuine = same_hash(token.token_hash if token else NO_HASH, secret.hash)
    if token is None or not genuine:
        raise Unauthorized(
            "The registration token is not valid here.", hint="Ask an administrator to mint one for you."
        )
    return token


def _spent(reason: RegistrationTokenState, why: str) -> ConsoleError:
    return Conflict(why, hint="Ask an administrator to mint a new one.", details={"reason": reason.value})


def _require_usable(token: Row[Any]) -> None:
    if token.revoked:
        raise _spent(RegistrationTokenState.REVOKED, "The registration token was revoked.")
    if not token.is_active or token.role != Role.ADMIN:
        why = "The registration token ended with the rights of the person who minted it."
        raise _spent(RegistrationTokenState.REVOKED, why)
    if token.expired:
        raise _spent(RegistrationTokenState.EXPIRED, "The registration token has expired.")


async def _asked_again(work: Work, token: Row[Any], nonce: str) -> tuple[AgentId, Secret]:
    """The answer was lost on its way: whoever used the token gets a new key for the same agent."""
    same_client = same_hash(token.client_nonce_hash or NO_HASH, hash_of(nonce))
    agent_id = AgentId.of(token.used_by_agent_id)
    if same_client and token.may_ask_again and token.is_active:
        key, at = await _new_key(work, agent_id, overlap=0)
        if at is not None:
            return agent_id, key
    raise _spent(RegistrationTokenState.USED, "The registration token was used already.")


async def _new_key(work: Work, agent_id: AgentId, *, overlap: int) -> tuple[Secret, datetime | None]:
    """Nothing is changed, and no time given, when there is no such agent or it is shut out."""
    team_id = work.caller.team_id
    key = Secret.mint(team_id, agent_id)
    words = {"key_hash": key.hash, "key_prefix": key.shown_prefix, "overlap": overlap}
    whose = {"team_id": team_id, "agent_id": agent_id, "user_id": work.caller.user_id}
    at: datetime | None = (await work.connection.execute(NEW_KEY, whose | words)).scalar()
    return key, at


async def _come_in(work: Work, new: AgentRegistration) -> tuple[AgentId, Secret]:
    team_id, creator = work.caller.team_id, work.caller.user_id
    agent_id, system_user_id = AgentId.new(), UserId.new()
    key = Secret.mint(team_id, agent_id)
    worker_id = new.worker_id or new.name
    await work.connection.execute(
        insert(users).values(
            team_id=team_id,
            id=system_user_id,
            kind="system",
            full_name=f"Agent: {new.name}",
            created_by_user_id=creator,
        )
    )
    made = await work.connection.execute(
        insert(agents)
        .values(
            team_id=team_id,
            id=agent_id,
            owner_user_id=creator,
            created_by_user_id=creator,
            system_user_id=system_user_id,
            worker_id=worker_id,
            api_key_hash=key.hash,
            api_key_prefix=key.shown_prefix,
            **new.model_dump(exclude={"token", "nonce", "capabilities", "worker_id"}),
        )
        .on_conflict_do_nothing()
        .returning(agents.c.id)
    )
    if made.first() is None:
        raise await _taken(work, new.name)
    await work.connection.execute(
        insert(agent_runtime).values(
            team_id=team_id, agent_id=agent_id, presence="offline", capabilities=list(new.capabilities)
        )
    )
    await end_worker_tokens(work, worker_id)
    return agent_id, key


async def _taken(work: Work, name: str) -> ConsoleError:
    same_name = select(agents.c.id).where(
        agents.c.team_id == work.caller.team_id,
        func.lower(agents.c.name) == func.lower(name),
        agents.c.deleted_at.is_(None),
    )
    field = "worker_id" if (await work.connection.execute(same_name)).first() is None else "name"
    return Conflict(
        f"Another agent of the team has this {field.replace('_', ' ')}.",
        hint="Choose another; the registration token is still good.",
        details={"field": field},
    )


@answers(AGENTS_ROTATE_KEY)
async def rotate_key(work: Work, asked: KeyRotation) -> MintedKey:
    if work.caller.agent_id not in (None, asked.agent_id):
        raise no_agent(asked.agent_id)
    known = await get_agent(work, AgentAsked(agent_id=asked.agent_id))
    _require_right_to_rotate(work.caller)
    key, at = await _new_key(work, asked.agent_id, overlap=asked.overlap_seconds)
    if at is None:
        raise Conflict(f"{known.id} is revoked; a new key would open nothing.", hint="Register the agent again.")
    facts = {"overlap_seconds": asked.overlap_seconds, "auth_source": work.caller.auth_source.value}
    await audit.append(work, AuditEvent(KEY_ROTATED, "agent", str(asked.agent_id), facts), at)
    work.announce(Topic.AGENTS, asked.agent_id)
    return MintedKey(agent=await get_agent(work, AgentAsked(agent_id=asked.agent_id)), secret=key.word)


def _require_right_to_rotate(caller: Caller) -> None:
    """An agent proves with its key that the key is its own; a worker token, whose policy may be narrower
    than the agent's, must not turn itself into one."""
    if caller.agent_id is None:
        require_permission(caller.role, Permission.ADMINISTER, AGENTS_ROTATE_KEY.name)
    elif caller.auth_source is not AuthSource.API_KEY:
        raise Forbidden("Only the agent's own key can be exchanged for a new one.", hint="Use the agt_key_… key.")
