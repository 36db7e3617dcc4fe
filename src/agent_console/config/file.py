"""The configuration file: found, read, and refused with line and key when it can't be used."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from agent_console.config.complaints import explained, in_file
from agent_console.config.contradictions import refuse_contradictions
from agent_console.config.tables import FileTable, Preferences, ProfileTable
from agent_console.domain.errors import ConfigError

GOES_WITH = {
    "password_file": "dsn",
    "password_env": "dsn",
    "password_keyring": "dsn",
    "listen_dsn": "dsn",
    "ca_file": "url",
}
"""Keys that mean nothing without another."""


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
    top = ProfileTable.model_validate(table.model_dump(include=set(Preferences.model_fields)))
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
    refuse_contradictions(where, profile)
    said = {key for key, value in profile if value is not None}
    for key, needed in GOES_WITH.items():
        if key in said and needed not in said:
            raise ConfigError(
                f"{where} has {key} but no {needed}.",
                hint=f"It is used with {needed} only: add the {needed}, or remove it.",
                details={"file": str(path), "profile": name},
            )
    if profile.data is not None and not profile.embedded:
        raise ConfigError(
            f"{where} has data but is not embedded.",
            hint="The data folder is for the embedded database only: remove it, or set embedded = true.",
            details={"file": str(path), "profile": name},
        )
