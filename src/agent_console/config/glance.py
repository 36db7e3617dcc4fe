"""A first glance at the looks, for a frame that is painted before the configuration is read in earnest.

It believes nothing and complains about nothing: whatever it can't read is a default, and the real reading,
which follows at once, says what is wrong.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agent_console.config.folders import config_folder
from agent_console.config.settings import BUILT_IN_PROFILE
from agent_console.domain.errors import ConsoleError

TRUE = ("1", "true", "yes", "on")


@dataclass(frozen=True, slots=True)
class Glance:
    theme: str = "dark"
    slow: bool = False
    mouse: bool = True
    bell: bool = True


def glance(options: Mapping[str, object]) -> Glance:
    file = _file(options)
    named = options.get("profile") or os.environ.get("AGENT_CONSOLE_PROFILE") or file.get("default_profile")
    profiles = file.get("profiles")
    profile = profiles.get(str(named or BUILT_IN_PROFILE)) if isinstance(profiles, dict) else None
    places = (profile if isinstance(profile, dict) else {}, file)

    def value(key: str) -> object:
        written = os.environ.get(f"AGENT_CONSOLE_{key.upper()}")
        found = (options.get(key), written or None, *(place.get(key) for place in places))
        return next((item for item in found if item is not None), None)

    def switch(key: str, default: bool) -> bool:
        found = value(key)
        return default if found is None else str(found).lower() in TRUE

    theme = options.get("theme") or ("mono" if os.environ.get("NO_COLOR") else value("theme"))
    return Glance(str(theme or "dark"), switch("slow", False), switch("mouse", True), switch("bell", True))


def _file(options: Mapping[str, object]) -> dict[str, object]:
    try:
        chosen = options.get("config") or os.environ.get("AGENT_CONSOLE_CONFIG")
        path = Path(str(chosen)).expanduser() if chosen else config_folder() / "config.toml"
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError, RuntimeError, ConsoleError):
        return {}
    import tomllib

    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}
