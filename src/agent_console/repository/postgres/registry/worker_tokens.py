"""Worker tokens: a worker's credential with its policy."""

from datetime import datetime
from typing import Any

from sqlalchemy import Row, Select, and_, case, func, insert, literal, select, text, update

from agent_console.database.tables import agents, users, worker_tokens
from agent_console.domain.audit import AuditEvent, Facts
from agent_console.domain.errors import Conflict, NotFound
from agent_console.domain.ids import TeamId, WorkerTokenId
from agent_console.domain.records import Page
from agent_console.domain.secrets import Secret
from agent_console.domain.tokens import (
    MintedWorkerToken,
    NewWorkerToken,
    TokenState,
    WorkerToken,
    WorkerTokenAsked,
    WorkerTokenQuery,
    WorkerTokenRotation,
)
from agent_console.repository.operations.credentials import (
    TOKEN_REVOKED,
    WORKER_TOKEN_MINTED,
    WORKER_TOKEN_ROTATED,
    WORKER_TOKENS_LIST,
    WORKER_TOKENS_MINT,
    WORKER_TOKENS_REVOKE,
    WORKER_TOKENS_ROTATE,
)
from agent_console.repository.port import Topic
from agent_console.repository.postgres import audit
from agent_console.repository.postgres.pages import page_of, position
from agent_console.repository.postgres.work import Work, answers

SHOWN = tuple(worker_tokens.c[name] for name in WorkerToken.model_fields if name in worker_tokens.c)
STATE = case(
    (worker_tokens.c.is_active.is_(False), literal(TokenState.REVOKED.value)),
    (worker_tokens.c.expires_at <= func.now(), literal(TokenState.EXPIRED.value)),
    else_=literal(TokenState.ACTIVE.value),
)


def shown_worker_tokens(team_id: TeamId) -> Select[Any]:
    made = and_(users.c.team_id == worker_tokens.c.team_id, users.c.id == worker_tokens.c.created_by_user_id)
    return (
        select(*SHOWN, STATE.label("state"), users.c.full_name.label("created_by"))
        .select_from(worker_tokens.join(users, made))
        .where(worker_tokens.c.team_id == team_id)
    )


async def _worker_token(work: Work, token_id: WorkerTokenId) -> WorkerToken:
    wanted = shown_worker_tokens(work.caller.team_id).where(worker_tokens.c.id == token_id)
    found = (await work.connection.execute(wanted)).mappings().first()
    if found is None:
        raise NotFound(f"There is no worker token {token_id}.", hint="List them: agent-console worker-tokens list")
    return WorkerToken.model_validate(dict(found))


async def _locked_worker_token(work: Work, token_id: WorkerTokenId) -> WorkerToken:
    held = select(worker_tokens.c.id).where(
        worker_tokens.c.team_id == work.caller.team_id, worker_tokens.c.id == token_id
    )
    await work.connection.execute(held.with_for_update())
    return await _worker_token(work, token_id)


@answers(WORKER_TOKENS_MINT)
async def mint_worker_token(work: Work, new: NewWorkerToken) -> MintedWorkerToken:
    _require_open(await _held_agent(work, new.worker_id))
    facts: Facts = {"worker_id": new.worker_id}
    for name in ("allowed_repositories", "allowed_job_types", "capabilities"):
        allowed: tuple[str, ...] | None = getattr(new, name)
        facts[name] = None if allowed is None else len(allowed)
    policy = new.model_dump(mode="json")
    token_id, secret, at = await _add_worker_token(work, policy)
    await audit.append(work, AuditEvent(WORKER_TOKEN_MINTED, "worker_token", str(token_id), facts), at)
    shown = await _worker_token(work, token_id)
    return MintedWorkerToken(**shown.model_dump(), secret=secret.word)


async def _held_agent(work: Work, worker_id: str) -> Row[Any] | None:
    """Held until the token is made, so that no token outlives an agent deleted meanwhile."""
    wanted = select(agents.c.revoked_at).where(
        agents.c.team_id == work.caller.team_id, agents.c.worker_id == worker_id, agents.c.deleted_at.is_(None)
    )
    return (await work.connection.execute(wanted.with_for_update(read=True))).first()


def _require_open(agent: Row[Any] | None) -> None:
    if agent is None:
        raise NotFound("No agent of the team has this worker id.", hint="List them: agent-console agents list")
    if agent.revoked_at is not None:
        raise Conflict(
            "The agent with this worker id is revoked; a token would open nothing.",
            hint="Choose the worker id of an agent that is not revoked.",
        )


async def _add_worker_token(work: Work, policy: dict[str, Any]) -> tuple[WorkerTokenId, Secret, datetime]:
    token_id = WorkerTokenId.new()
    secret = Secret.mint(work.caller.team_id, token_id)
    made = await work.connection.execute(
        insert(worker_tokens)
        .values(
            policy
            | {
                "team_id": work.caller.team_id,
                "id": token_id,
                "token_hash": secret.hash,
                "token_prefix": secret.shown_prefix,
                "created_by_user_id": work.caller.user_id,
            }
        )
        .returning(worker_tokens.c.created_at)
    )
    work.announce(Topic.TOKENS, token_id)
    return token_id, secret, made.scalar_one()


@answers(WORKER_TOKENS_LIST)
async def list_worker_tokens(work: Work, query: WorkerTokenQuery) -> Page[WorkerToken]:
    """The primary key, read backwards; of one worker, worker_tokens_worker_idx and its few rows sorted."""
    wanted = shown_worker_tokens(work.caller.team_id)
    wanted = wanted.order_by(worker_tokens.c.id.desc()).limit(query.limit + 1)
    if (after := position(query.after, WorkerTokenId)) is not None:
        wanted = wanted.where(worker_tokens.c.id < after)
    if query.worker_id is not None:
        wanted = wanted.where(worker_tokens.c.worker_id == query.worker_id)
    rows = (await work.connection.execute(wanted)).mappings().all()
    return page_of(Page[WorkerToken], rows, query.limit, WorkerTokenId)


@answers(WORKER_TOKENS_REVOKE)
async def revoke_worker_token(work: Work, asked: WorkerTokenAsked) -> WorkerToken:
    token = await _locked_worker_token(work, asked.token_id)
    if token.state is TokenState.REVOKED:
        return token
    at = await _end_worker_token(work, asked.token_id, overlap=0)
    event = AuditEvent(TOKEN_REVOKED, "worker_token", str(asked.token_id), {"worker_id": token.worker_id})
    await audit.append(work, event, at)
    return await _worker_token(work, asked.token_id)


@answers(WORKER_TOKENS_ROTATE)
async def rotate_worker_token(work: Work, asked: WorkerTokenRotation) -> MintedWorkerToken:
    # The agent before its token, as whoever ends all tokens of an agent locks them.
    agent = await _held_agent(work, (await _worker_token(work, asked.token_id)).worker_id)
    old = await _locked_worker_token(work, asked.token_id)
    if old.state is not TokenState.ACTIVE:
        raise Conflict(
            f"{asked.token_id} is {old.state.value}; there is nothing left to rotate.",
            hint="Mint a new one.",
            details={"reason": old.state.value},
        )
    _require_open(agent)
    kept = {"worker_id", "description", "allowed_repositories", "allowed_job_types", "capabilities"}
    token_id, secret, at = await _add_worker_token(work, old.model_dump(mode="json", include=kept))
    await _end_worker_token(work, asked.token_id, overlap=asked.overlap_seconds)
    facts: Facts = {
        "worker_id": old.worker_id,
        "overlap_seconds": asked.overlap_seconds,
        "new_token_id": str(token_id),
    }
    await audit.append(work, AuditEvent(WORKER_TOKEN_ROTATED, "worker_token", str(asked.token_id), facts), at)
    shown = await _worker_token(work, token_id)
    return MintedWorkerToken(**shown.model_dump(), secret=secret.word)


# An overlap never makes a token live longer than it would have.
END = text("""
    update worker_tokens
       set is_active = is_active and :overlap > 0,
           expires_at = case when :overlap > 0 then least(expires_at, now() + make_interval(secs => :overlap))
                             else expires_at end,
           updated_by_user_id = :user_id, updated_at = now()
     where team_id = :team_id and id = :token_id
 returning updated_at
""")


async def _end_worker_token(work: Work, token_id: WorkerTokenId, *, overlap: int) -> datetime:
    whose = {"team_id": work.caller.team_id, "token_id": token_id, "user_id": work.caller.user_id}
    ended = await work.connection.execute(END, whose | {"overlap": overlap})
    work.announce(Topic.TOKENS, token_id)
    at: datetime = ended.scalar_one()
    return at


async def end_worker_tokens(work: Work, *worker_ids: str) -> None:
    """For an agent that comes, goes or changes its worker id: a token of one agent must never open the door for
    another that bears the same worker id later. Served by worker_tokens_worker_idx."""
    ended = await work.connection.execute(
        update(worker_tokens)
        .where(
            worker_tokens.c.team_id == work.caller.team_id,
            worker_tokens.c.worker_id.in_(worker_ids),
            worker_tokens.c.is_active,
        )
        .values(is_active=False, updated_by_user_id=work.caller.user_id, updated_at=func.now())
        .returning(worker_tokens.c.id)
    )
    for token_id in ended.scalars():
        work.announce(Topic.TOKENS, token_id)
