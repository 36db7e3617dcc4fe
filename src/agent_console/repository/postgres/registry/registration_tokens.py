"""Registration tokens: what lets one agent in, once."""

from datetime import timedelta
from typing import Any

from sqlalchemy import Select, and_, case, func, insert, literal, select, update

from agent_console.database.tables import agents, registration_tokens, users
from agent_console.domain.audit import AuditEvent
from agent_console.domain.errors import Conflict, NotFound
from agent_console.domain.ids import RegistrationTokenId, TeamId
from agent_console.domain.records import Page
from agent_console.domain.secrets import Secret
from agent_console.domain.tokens import (
    MintedRegistrationToken,
    NewRegistrationToken,
    RegistrationToken,
    RegistrationTokenAsked,
    RegistrationTokenQuery,
    RegistrationTokenState,
)
from agent_console.repository.operations.credentials import (
    REGISTRATION_TOKEN_MINTED,
    REGISTRATION_TOKENS_LIST,
    REGISTRATION_TOKENS_MINT,
    REGISTRATION_TOKENS_REVOKE,
    TOKEN_REVOKED,
)
from agent_console.repository.port import Topic
from agent_console.repository.postgres import audit
from agent_console.repository.postgres.pages import page_of, position
from agent_console.repository.postgres.work import Work, answers

SHOWN = tuple(registration_tokens.c[n] for n in RegistrationToken.model_fields if n in registration_tokens.c)
STATE = case(
    (registration_tokens.c.is_used, literal(RegistrationTokenState.USED.value)),
    (registration_tokens.c.revoked_at.is_not(None), literal(RegistrationTokenState.REVOKED.value)),
    (registration_tokens.c.expires_at <= func.now(), literal(RegistrationTokenState.EXPIRED.value)),
    else_=literal(RegistrationTokenState.FRESH.value),
)


def shown_tokens(team_id: TeamId) -> Select[Any]:
    """With the names of who made it and who used it, by key; never the hashes."""
    tokens = registration_tokens
    maker = and_(users.c.team_id == tokens.c.team_id, users.c.id == tokens.c.created_by_user_id)
    user = and_(agents.c.team_id == tokens.c.team_id, agents.c.id == tokens.c.used_by_agent_id)
    return (
        select(
            *SHOWN,
            STATE.label("state"),
            users.c.full_name.label("created_by"),
            agents.c.name.label("used_by"),
        )
        .select_from(tokens.join(users, maker).outerjoin(agents, user))
        .where(tokens.c.team_id == team_id)
    )


@answers(REGISTRATION_TOKENS_MINT)
async def mint_registration_token(work: Work, new: NewRegistrationToken) -> MintedRegistrationToken:
    team_id, token_id = work.caller.team_id, RegistrationTokenId.new()
    secret = Secret.mint(team_id, token_id)
    made = await work.connection.execute(
        insert(registration_tokens)
        .values(
            team_id=team_id,
            id=token_id,
            name=new.name,
            token_hash=secret.hash,
            token_prefix=secret.shown_prefix,
            expires_at=func.now() + timedelta(hours=new.hours),
            created_by_user_id=work.caller.user_id,
        )
        .returning(registration_tokens.c.created_at)
    )
    event = AuditEvent(REGISTRATION_TOKEN_MINTED, "registration_token", str(token_id), {"hours": new.hours})
    await audit.append(work, event, made.scalar_one())
    work.announce(Topic.TOKENS, token_id)
    shown = await _registration_token(work, token_id)
    return MintedRegistrationToken(**shown.model_dump(), secret=secret.word)


@answers(REGISTRATION_TOKENS_LIST)
async def list_registration_tokens(work: Work, query: RegistrationTokenQuery) -> Page[RegistrationToken]:
    """The primary key, read backwards."""
    tokens = registration_tokens
    wanted = shown_tokens(work.caller.team_id).order_by(tokens.c.id.desc()).limit(query.limit + 1)
    if (after := position(query.after, RegistrationTokenId)) is not None:
        wanted = wanted.where(tokens.c.id < after)
    rows = (await work.connection.execute(wanted)).mappings().all()
    return page_of(Page[RegistrationToken], rows, query.limit, RegistrationTokenId)


async def _registration_token(work: Work, token_id: RegistrationTokenId) -> RegistrationToken:
    wanted = shown_tokens(work.caller.team_id).where(registration_tokens.c.id == token_id)
    found = (await work.connection.execute(wanted)).mappings().first()
    if found is None:
        raise NotFound(
            f"There is no registration token {token_id}.",
            hint="List them: agent-console registration-tokens list",
        )
    return RegistrationToken.model_validate(dict(found))


@answers(REGISTRATION_TOKENS_REVOKE)
async def revoke_registration_token(work: Work, asked: RegistrationTokenAsked) -> RegistrationToken:
    tokens = registration_tokens
    revoked = await work.connection.execute(
        update(tokens)
        .where(
            tokens.c.team_id == work.caller.team_id,
            tokens.c.id == asked.token_id,
            tokens.c.is_used.is_(False),
            tokens.c.revoked_at.is_(None),
        )
        .values(revoked_at=func.now(), revoked_by_user_id=work.caller.user_id)
        .returning(tokens.c.revoked_at)
    )
    at = revoked.scalar()
    shown = await _registration_token(work, asked.token_id)
    if shown.state is RegistrationTokenState.USED:
        raise Conflict(
            f"{asked.token_id} was used by {shown.used_by_agent_id}; there is nothing left to revoke.",
            hint="To shut the agent out, revoke the agent.",
            details={"reason": "used", "agent_id": str(shown.used_by_agent_id)},
        )
    if at is not None:
        await audit.append(work, AuditEvent(TOKEN_REVOKED, "registration_token", str(asked.token_id)), at)
        work.announce(Topic.TOKENS, asked.token_id)
    return shown
