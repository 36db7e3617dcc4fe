"""What can't stand together in one place, be it a profile, the environment or the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from agent_console.config import dsn
from agent_console.config.tables import ProfileTable, SecretKind
from agent_console.domain.errors import ConfigError


def refuse_contradictions(
    where: str,
    table: ProfileTable,
    called: Callable[[str], str] = str,
    further_places: Mapping[SecretKind, str] | None = None,
) -> None:
    """One way to a control plane, one token, one password. `called` is how a key is written there;
    `further_places` are places of a secret for which no key stands."""
    further = further_places or {}
    _only_one(where, *map(called, table.targets()))
    _only_one(where, *map(called, table.secret_places("token")), *_given(further, "token"))
    passwords = (*map(called, table.secret_places("password")), *_given(further, "password"))
    _only_one(where, *passwords)
    if table.dsn is not None and dsn.has_password(table.dsn.get_secret_value()):
        _only_one(where, f"a password in {called('dsn')}", *passwords)


def _given(further: Mapping[SecretKind, str], kind: SecretKind) -> tuple[str, ...]:
    return (further[kind],) if kind in further else ()


def _only_one(where: str, *given: str) -> None:
    if len(given) > 1:
        raise ConfigError(
            f"{where} has {' and '.join(given)}, which exclude each other.",
            hint="Keep exactly one of them.",
            details={"given": list(given)},
        )
