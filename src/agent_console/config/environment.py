"""The same keys as variables: AGENT_CONSOLE_ and the key in capitals."""

from __future__ import annotations

from pydantic_settings import BaseSettings, SettingsConfigDict

from agent_console.config.tables import ChosenTable


class EnvironmentTable(ChosenTable, BaseSettings):
    """What the environment says; an empty variable says nothing."""

    model_config = SettingsConfigDict(strict=False, env_prefix="AGENT_CONSOLE_", env_ignore_empty=True)
