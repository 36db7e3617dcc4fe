"""Mint an operator token for the one who owns the embedded database."""

import os
from pathlib import Path

from sqlalchemy import Connection, func, insert, select

from agent_console.database.address import administration_engine, refused
from agent_console.database.tables import operator_tokens, users
from agent_console.domain.errors import Unauthorized
from agent_console.domain.ids import OperatorTokenId, TeamId, UserId
from agent_console.domain.secrets import Secret, same_hash


def demo_token(dsn: str, path: Path) -> str:
    """The administrator's token: the one kept in the file if the database still takes it, else a new one."""
    with refused(dsn), administration_engine(dsn).begin() as connection:
        kept = _kept(path)
        if kept is not None and _is_valid(connection, kept):
            return kept.word
        secret = _mint(connection, *_administrator(connection), "demo console")
    _keep(path, secret.word)
    return secret.word


def _kept(path: Path) -> Secret | None:
    try:
        return Secret.parse(path.read_text(encoding="ascii"))
    except (OSError, UnicodeDecodeError, Unauthorized):
        return None


def _is_valid(connection: Connection, secret: Secret) -> bool:
    found = connection.scalar(
        select(operator_tokens.c.token_hash).where(
            operator_tokens.c.team_id == secret.team_id,
            operator_tokens.c.id == secret.owner,
            operator_tokens.c.revoked_at.is_(None),
        )
    )
    return found is not None and same_hash(found, secret.hash)


def _administrator(connection: Connection) -> tuple[TeamId, UserId]:
    admin = connection.execute(
        select(users.c.team_id, users.c.id).where(users.c.role == "admin").order_by(users.c.id).limit(1)
    ).one()
    return TeamId.of(admin.team_id), UserId.of(admin.id)


def mint_token(dsn: str, email: str, name: str | None = None) -> Secret:
    """A new token for a person of the database; the word is in the answer and nowhere else."""
    with refused(dsn), administration_engine(dsn).begin() as connection:
        person = connection.execute(
            select(users.c.team_id, users.c.id).where(func.lower(users.c.email) == email.lower())
        ).one()
        return _mint(connection, TeamId.of(person.team_id), UserId.of(person.id), name)


def _mint(connection: Connection, team_id: TeamId, user_id: UserId, name: str | None) -> Secret:
    secret = Secret.mint(team_id, OperatorTokenId.new())
    connection.execute(
        insert(operator_tokens).values(
            team_id=team_id,
            id=secret.owner,
            user_id=user_id,
            name=name,
            token_hash=secret.hash,
            token_prefix=secret.shown_prefix,
            created_by_user_id=user_id,
        )
    )
    return secret


def _keep(path: Path, word: str) -> None:
    """Never readable by others, not even for the moment between making and closing."""
    fresh = path.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(f"{word}\n")
    fresh.replace(path)
