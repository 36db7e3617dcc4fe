"""The configuration file: found, read, and refused with line and key when it can't be used."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from agent_console.config import dsn
from agent_console.config.complaints import explained, in_file
from agent_console.config.tables import FileTable, ProfileTable
from agent_console.domain.errors import ConfigError


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A file that was read; an absent one says nothing."""

    path: Path
    default_profile: str | None
    top: ProfileTable
    profiles: Mapping[str, ProfileTable]


def read_config_file(path: Path, *, asked_for: bool) -> ConfigFile:
    """The file's tables. A file that was asked for by name must exist; the usual one need not."""
    table = _validated(path, _parsed(path, asked_for=asked_for))
    for name, profile in table.profiles.items():
        _check_profile(path, name, profile)
    top = ProfileTable(
        theme=table.theme,
        mouse=table.mouse,
        bell=table.bell,
        slow=table.slow,
        keymap=table.keymap,
        team=table.team,
        user=table.user,
        read_only=table.read_only,
    )
    return ConfigFile(path, table.default_profile, top, table.profiles)


def _parsed(path: Path, *, asked_for: bool) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except FileNotFoundError:
        # A link that leads nowhere is a mistake, not an absent file.
        if not asked_for and not path.is_symlink():
            return {}
        problem = "it does not exist"
    except OSError as error:
        problem = error.strerror or str(error)
    except UnicodeDecodeError as error:
        problem = f"it is not UTF-8 text (byte {error.start})"
    except tomllib.TOMLDecodeError as error:
        problem = f"it is not valid TOML: {error}"
    except RecursionError:
        problem = "it is not valid TOML: too many brackets within brackets"
    # Raised out here, so that the parser's error, which may hold the whole text, doesn't travel with it.
    raise ConfigError(
        f"The configuration file {path} can't be read: {problem}.",
        hint="Correct that, or name another file with AGENT_CONSOLE_CONFIG.",
        details={"file": str(path)},
    )


def _validated(path: Path, values: dict[str, object]) -> FileTable:
    try:
        return FileTable.model_validate(values)
    except ValidationError as error:
        refusal = explained(error, in_file(path))
    raise refusal


def _check_profile(path: Path, name: str, profile: ProfileTable) -> None:
    where = f"{path}: profile {name}"
    only_one(where, profile.targets())
    only_one(where, tuple(profile.secret_places("token")))
    passwords = tuple(profile.secret_places("password"))
    only_one(where, passwords)
    beside_dsn = (*passwords, *(("listen_dsn",) if profile.listen_dsn else ()))
    if beside_dsn and profile.dsn is None:
        raise ConfigError(
            f"{where} has {beside_dsn[0]} but no dsn.",
            hint="It is used with dsn only: add the dsn, or remove it.",
            details={"file": str(path), "profile": name},
        )
    if profile.ca_file is not None and profile.url is None:
        raise ConfigError(
            f"{where} has ca_file but no url.",
            hint="It is used with url only: add the url, or remove it.",
            details={"file": str(path), "profile": name},
        )
    if profile.dsn is not None and dsn.has_password(profile.dsn.get_secret_value()):
        only_one(where, ("a password in dsn", *passwords))
    if profile.data is not None and not profile.embedded:
        raise ConfigError(
            f"{where} has data but is not embedded.",
            hint="The data folder is for the embedded database only: remove it, or set embedded = true.",
            details={"file": str(path), "profile": name},
        )


def only_one(where: str, given: tuple[str, ...]) -> None:
    if len(given) > 1:
        raise ConfigError(
            f"{where} has {' and '.join(given)}, which exclude each other.",
            hint="Keep exactly one of them.",
            details={"given": list(given)},
        )
