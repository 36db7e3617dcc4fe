"""Operator tokens: what a person signs in with. Everyone deals with their own, an administrator with all."""

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Row, Select, and_, case, func, insert, literal, select, text

from agent_console.database.tables import operator_tokens, users
from agent_console.domain.audit import AuditEvent, Facts
from agent_console.domain.errors import Conflict, Forbidden, NotFound
from agent_console.domain.identity import Caller
from agent_console.domain.ids import OperatorTokenId, TeamId, UserId
from agent_console.domain.permissions import Permission, Role, require_permission
from agent_console.domain.records import Page
from agent_console.domain.secrets import Secret
from agent_console.domain.tokens import (
    MintedOperatorToken,
    NewOperatorToken,
    OperatorToken,
    OperatorTokenAsked,
    OperatorTokenQuery,
    OperatorTokenRotation,
    TokenState,
)
from agent_console.repository.operations.credentials import (
    AUTH_LEFT,
    OPERATOR_TOKEN_MINTED,
    OPERATOR_TOKEN_ROTATED,
    OPERATOR_TOKENS_LIST,
    OPERATOR_TOKENS_MINT,
    OPERATOR_TOKENS_REVOKE,
    OPERATOR_TOKENS_ROTATE,
    SESSION_REFRESHED,
    TOKEN_REVOKED,
)
from agent_console.repository.port import Topic
from agent_console.repository.postgres import audit
from agent_console.repository.postgres.pages import page_of, position
from agent_console.repository.postgres.registry.users import no_user
from agent_console.repository.postgres.work import Work, answers

SHOWN = tuple(operator_tokens.c[name] for name in OperatorToken.model_fields if name in operator_tokens.c)
STATE = case(
    (operator_tokens.c.revoked_at.is_not(None), literal(TokenState.REVOKED.value)),
    (operator_tokens.c.expires_at <= func.now(), literal(TokenState.EXPIRED.value)),
    else_=literal(TokenState.ACTIVE.value),
)
maker = users.alias("maker")


def shown_operator_tokens(team_id: TeamId) -> Select[Any]:
    tokens = operator_tokens
    owned = and_(users.c.team_id == tokens.c.team_id, users.c.id == tokens.c.user_id)
    made = and_(maker.c.team_id == tokens.c.team_id, maker.c.id == tokens.c.created_by_user_id)
    return (
        select(
            *SHOWN,
            STATE.label("state"),
            users.c.full_name.label("user"),
            maker.c.full_name.label("created_by"),
        )
        .select_from(tokens.join(users, owned).join(maker, made))
        .where(tokens.c.team_id == team_id)
    )


def _require_person(caller: Caller) -> None:
    if caller.agent_id is not None:
        raise Forbidden("Tokens of people are for people.", hint="Ask an administrator.")


async def _operator_token(work: Work, token_id: OperatorTokenId) -> OperatorToken:
    """Somebody else's token is unknown to everyone but an administrator."""
    wanted = shown_operator_tokens(work.caller.team_id).where(operator_tokens.c.id == token_id)
    if work.caller.role is not Role.ADMIN:
        wanted = wanted.where(operator_tokens.c.user_id == work.caller.user_id)
    found = (await work.connection.execute(wanted)).mappings().first()
    if found is None:
        hint = "List them: agent-console operator-tokens list"
        raise NotFound(f"There is no operator token {token_id}.", hint=hint)
    return OperatorToken.model_validate(dict(found))


async def _locked_operator_token(work: Work, token_id: OperatorTokenId) -> OperatorToken:
    _require_person(work.caller)
    await _operator_token(work, token_id)
    held = select(operator_tokens.c.id).where(
        operator_tokens.c.team_id == work.caller.team_id, operator_tokens.c.id == token_id
    )
    await work.connection.execute(held.with_for_update())
    return await _operator_token(work, token_id)


async def _known_person(work: Work, user_id: UserId) -> Row[Any, Any]:
    """The person, if the caller may deal with their tokens. Held until the end, as deactivating holds it."""
    _require_person(work.caller)
    wanted = select(users.c.kind, users.c.is_active).where(
        users.c.team_id == work.caller.team_id, users.c.id == user_id
    )
    person = (await work.connection.execute(wanted.with_for_update(read=True))).first()
    if person is None:
        raise no_user(user_id)
    return person


@answers(OPERATOR_TOKENS_MINT)
async def mint_operator_token(work: Work, new: NewOperatorToken) -> MintedOperatorToken:
    person = await _known_person(work, new.user_id)
    if new.user_id != work.caller.user_id:
        require_permission(work.caller.role, Permission.ADMINISTER, OPERATOR_TOKENS_MINT.name)
    if person.kind != "human":
        raise Conflict(f"{new.user_id} belongs to an agent and can't sign in.", hint="Rotate the agent's key.")
    if not person.is_active:
        raise Conflict(f"{new.user_id} is deactivated.", hint="Activate them first.")
    token_id, secret, at = await _add_operator_token(work, new.user_id, new.name, new.days)
    facts: Facts = {"user_id": str(new.user_id), "days": new.days}
    await audit.append(work, AuditEvent(OPERATOR_TOKEN_MINTED, "operator_token", str(token_id), facts), at)
    shown = await _operator_token(work, token_id)
    return MintedOperatorToken(**shown.model_dump(), secret=secret.word)


async def _add_operator_token(
    work: Work, user_id: UserId, name: str | None, days: int
) -> tuple[OperatorTokenId, Secret, datetime]:
    token_id = OperatorTokenId.new()
    secret = Secret.mint(work.caller.team_id, token_id)
    made = await work.connection.execute(
        insert(operator_tokens)
        .values(
            team_id=work.caller.team_id,
            id=token_id,
            user_id=user_id,
            name=name,
            token_hash=secret.hash,
            token_prefix=secret.shown_prefix,
            expires_at=func.now() + timedelta(days=days),
            created_by_user_id=work.caller.user_id,
        )
        .returning(operator_tokens.c.created_at)
    )
    work.announce(Topic.TOKENS, token_id)
    return token_id, secret, made.scalar_one()


@answers(OPERATOR_TOKENS_LIST)
async def list_operator_tokens(work: Work, query: OperatorTokenQuery) -> Page[OperatorToken]:
    """The primary key, read backwards; of one person, operator_tokens_user_idx."""
    _require_person(work.caller)
    wanted = shown_operator_tokens(work.caller.team_id)
    wanted = wanted.order_by(operator_tokens.c.id.desc()).limit(query.limit + 1)
    if work.caller.role is not Role.ADMIN:
        wanted = wanted.where(operator_tokens.c.user_id == work.caller.user_id)
    if query.user_id is not None:
        wanted = wanted.where(operator_tokens.c.user_id == query.user_id)
    if (after := position(query.after, OperatorTokenId)) is not None:
        wanted = wanted.where(operator_tokens.c.id < after)
    rows = (await work.connection.execute(wanted)).mappings().all()
    return page_of(Page[OperatorToken], rows, query.limit, OperatorTokenId)


# An overlap never makes a token live longer than it would have.
END = text("""
    update operator_tokens
       set revoked_at = case when :overlap > 0 then revoked_at else now() end,
           expires_at = case when :overlap > 0 then least(expires_at, now() + make_interval(secs => :overlap))
                             else expires_at end
     where team_id = :team_id and id = :token_id
 returning now()
""")


async def _end_operator_token(work: Work, token_id: OperatorTokenId, *, overlap: int) -> datetime:
    whose = {"team_id": work.caller.team_id, "token_id": token_id, "overlap": overlap}
    ended = await work.connection.execute(END, whose)
    work.announce(Topic.TOKENS, token_id)
    at: datetime = ended.scalar_one()
    return at


@answers(OPERATOR_TOKENS_REVOKE)
async def revoke_operator_token(work: Work, asked: OperatorTokenAsked) -> OperatorToken:
    token = await _locked_operator_token(work, asked.token_id)
    if token.state is TokenState.REVOKED:
        return token
    at = await _end_operator_token(work, asked.token_id, overlap=0)
    action = AUTH_LEFT if work.caller.token_id == asked.token_id else TOKEN_REVOKED
    event = AuditEvent(action, "operator_token", str(asked.token_id), {"user_id": str(token.user_id)})
    await audit.append(work, event, at)
    return await _operator_token(work, asked.token_id)


@answers(OPERATOR_TOKENS_ROTATE)
async def rotate_operator_token(work: Work, asked: OperatorTokenRotation) -> MintedOperatorToken:
    old = await _locked_operator_token(work, asked.token_id)
    if old.state is not TokenState.ACTIVE:
        raise Conflict(
            f"{asked.token_id} is {old.state.value}; there is nothing left to rotate.",
            hint="Mint a new one.",
            details={"reason": old.state.value},
        )
    token_id, secret, at = await _add_operator_token(work, old.user_id, old.name, asked.days)
    await _end_operator_token(work, asked.token_id, overlap=asked.overlap_seconds)
    facts: Facts = {
        "user_id": str(old.user_id),
        "days": asked.days,
        "overlap_seconds": asked.overlap_seconds,
        "new_token_id": str(token_id),
    }
    action = SESSION_REFRESHED if work.caller.token_id == asked.token_id else OPERATOR_TOKEN_ROTATED
    await audit.append(work, AuditEvent(action, "operator_token", str(asked.token_id), facts), at)
    shown = await _operator_token(work, token_id)
    return MintedOperatorToken(**shown.model_dump(), secret=secret.word)
