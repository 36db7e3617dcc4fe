"""The sources of settings above the file, each read into a layer that knows where its values came from."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from agent_console.config.complaints import (
    explained,
    in_environment,
    nearest,
    on_command_line,
    option,
    variable,
)
from agent_console.config.contradictions import refuse_contradictions
from agent_console.config.file import ConfigFile
from agent_console.config.folders import config_folder, full_path
from agent_console.config.settings import BUILT_IN_PROFILE, Origin
from agent_console.config.tables import ChosenTable, CommandLineTable, ProfileTable, SecretKind
from agent_console.domain.errors import ConfigError

CONFIG_VARIABLE = variable("config")
SECRET_VARIABLES: Mapping[SecretKind, str] = {"token": variable("token"), "password": variable("password")}
"""They hold the secret itself, not its place."""

# Close enough to be a slip of the finger, far enough from variables that other programs may own.
SLIP = 0.85


@dataclass(frozen=True, slots=True)
class Layer:
    """What one source says, above or below the others."""

    table: ProfileTable
    origin: Callable[[str], Origin]
    """Where a key of this layer was written."""
    folder: Path | None = None
    """Where relative paths of this layer begin, if not at the shell's folder."""


def command_line_layer(given: CommandLineTable) -> Layer:
    return Layer(given, lambda key: Origin("command line", option(key)))


def no_colour_layer() -> Layer:
    """NO_COLOR, as no-color.org has it: any value but the empty one."""
    table = ProfileTable(theme="mono") if os.environ.get("NO_COLOR") else ProfileTable()
    return Layer(table, lambda _key: Origin("environment", "NO_COLOR"))


def environment_layer(given: ChosenTable) -> Layer:
    places = {f"{kind}_env": name for kind, name in _secrets_given().items()}
    return Layer(
        given.model_copy(update=places),
        lambda key: Origin("environment", places.get(key, variable(key))),
    )


def profile_layer(file: ConfigFile, name: str) -> Layer:
    """The profile's table; the built-in one stands in where the file has none of its name."""
    if name in file.profiles:
        table = file.profiles[name]
        return Layer(table, lambda _key: Origin("file", f"[profiles.{name}]", file.path), file.path.parent)
    if name == BUILT_IN_PROFILE:
        return Layer(ProfileTable(embedded=True), lambda _key: Origin("default"))
    existing = profile_names(file)
    close = nearest(name, existing)
    raise ConfigError(
        f"There is no profile {name!r}; {file.path} has {', '.join(existing)}.",
        hint=f'Did you mean "{close}"?'
        if close
        else f"Choose one of these, or add [profiles.{name}] to the file.",
        details={"profile": name, "profiles": list(existing)},
    )


def top_layer(file: ConfigFile) -> Layer:
    return Layer(file.top, lambda _key: Origin("file", "", file.path), file.path.parent)


def profile_names(file: ConfigFile) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*file.profiles, BUILT_IN_PROFILE]))


def read_command_line(given: Mapping[str, object]) -> CommandLineTable:
    try:
        table = CommandLineTable.model_validate(given)
    except ValidationError as error:
        refusal = explained(error, on_command_line())
    else:
        refuse_contradictions("The command line", table, option)
        return table
    raise refusal


def read_environment() -> ChosenTable:
    """The AGENT_CONSOLE_ variables; with none set, the slow import of pydantic-settings is saved."""
    ours = {name for name, value in os.environ.items() if name.upper().startswith(variable("")) and value}
    if not ours:
        return ChosenTable()
    _refuse_slips(ours)
    table = _environment_table()
    refuse_contradictions("The environment", table, variable, _secrets_given())
    return table


def config_path(command_line: CommandLineTable) -> tuple[Path, Origin]:
    if command_line.config is not None:
        return full_path(command_line.config, key="--config"), Origin("command line", "--config")
    if named := os.environ.get(CONFIG_VARIABLE):
        return full_path(named, key=CONFIG_VARIABLE), Origin("environment", CONFIG_VARIABLE)
    return config_folder() / "config.toml", Origin("default")


def _environment_table() -> ChosenTable:
    from agent_console.config.environment import EnvironmentTable

    try:
        return EnvironmentTable()
    except ValidationError as error:
        refusal = explained(error, in_environment())
    except RecursionError:
        refusal = ConfigError(
            f"{variable('keymap')} can't be read: too many brackets within brackets.",
            hint=in_environment().advice,
            details={"key": "keymap"},
        )
    raise refusal


def _refuse_slips(ours: set[str]) -> None:
    """A misspelt AGENT_CONSOLE_READ_ONLY must not leave the operator with all rights, unawares."""
    known = {variable(key) for key in ChosenTable.model_fields}
    known |= {CONFIG_VARIABLE, *SECRET_VARIABLES.values()}
    by_key = {name.removeprefix(variable("")): name for name in known}
    for name in sorted(ours - known):
        if close := nearest(name.upper().removeprefix(variable("")), by_key, cutoff=SLIP):
            raise ConfigError(
                f"The variable {name} is not known.",
                hint=f"Did you mean {by_key[close]}? Unset it otherwise.",
                details={"variable": name, "nearest": by_key[close]},
            )


def _secrets_given() -> dict[SecretKind, str]:
    return {kind: name for kind, name in SECRET_VARIABLES.items() if os.environ.get(name)}
