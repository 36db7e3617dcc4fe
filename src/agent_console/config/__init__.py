"""Profiles and settings: what is configured, where each value came from, and the folders on this machine.

Importing this package costs next to nothing; pydantic is imported when settings are first loaded.
"""

from __future__ import annotations

from collections.abc import Mapping

from agent_console.config.folders import config_folder, data_folder, runtime_folder, state_folder
from agent_console.config.settings import (
    Direct,
    Embedded,
    Origin,
    Profile,
    Remote,
    SecretFile,
    SecretKeyring,
    SecretSource,
    SecretVariable,
    Settings,
    ShownValue,
    Target,
)

__all__ = [
    "Direct",
    "Embedded",
    "Origin",
    "Profile",
    "Remote",
    "SecretFile",
    "SecretKeyring",
    "SecretSource",
    "SecretVariable",
    "Settings",
    "ShownValue",
    "Target",
    "config_folder",
    "data_folder",
    "load",
    "runtime_folder",
    "show",
    "state_folder",
]


def load(command_line: Mapping[str, object] | None = None) -> Settings:
    """Settings from the command line, the environment, the file and the defaults, in this order.

    `command_line` holds options by name, `None` meaning not given: `profile`, `config` (another file) and
    every key a profile may have. Raises ConfigError, never anything else.
    """
    from agent_console.config.loading import load_settings

    return load_settings(command_line or {})


def show(settings: Settings) -> list[ShownValue]:
    """Every value with its origin; of a secret only where it would come from and whether it is there."""
    from agent_console.config.shown import shown_values

    return shown_values(settings)
