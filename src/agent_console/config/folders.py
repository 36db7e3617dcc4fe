"""The folders agent-console owns on this machine, after the XDG rules."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from agent_console.domain.errors import ConfigError

if TYPE_CHECKING:
    from platformdirs.api import PlatformDirsABC

OWN = "agent-console"
# The embedded PostgreSQL runs under a user of its own when started by root, and that user can't be let into
# a 0700 home without opening the home to everyone.
ROOT_DATA_FOLDER = Path("/var/lib") / OWN


def data_folder(*, create: bool = False) -> Path:
    """Where the embedded database lives: AGENT_CONSOLE_DATA, else the place of the system or of the user."""
    if chosen := os.environ.get("AGENT_CONSOLE_DATA"):
        folder = full_path(chosen, key="AGENT_CONSOLE_DATA")
    elif os.geteuid() == 0:
        folder = ROOT_DATA_FOLDER
    else:
        folder = _user_folder(lambda dirs: dirs.user_data_path)
    return made(folder) if create else folder


def state_folder(*, create: bool = False) -> Path:
    """Where crash reports and histories go."""
    folder = _user_folder(lambda dirs: dirs.user_state_path)
    return made(folder) if create else folder


def config_folder(*, create: bool = False) -> Path:
    """Where config.toml is looked for."""
    folder = _user_folder(lambda dirs: dirs.user_config_path)
    return made(folder) if create else folder


def runtime_folder(*, create: bool = False) -> Path:
    """Where sockets and process ids go; gone after a reboot."""
    folder = _user_folder(lambda dirs: dirs.user_runtime_path)
    return made(folder) if create else folder


def full_path(text: str, *, key: str, start: Path | None = None) -> Path:
    """A path as people write it: ~ is the home; a relative one begins at `start`, else where the shell is."""
    try:
        return (start or Path()).joinpath(Path(text).expanduser()).absolute()
    except RuntimeError:
        missing = "home folder"
    except FileNotFoundError:
        missing = "current folder"
    raise ConfigError(
        f"The {missing} that {key} = {text!r} begins with is not known.",
        hint="Write the whole path.",
        details={"key": key},
    )


def made(folder: Path) -> Path:
    """The folder, created with whatever is missing above it, closed to others; what exists stays as it is."""
    try:
        for step in reversed(_missing(folder)):
            step.mkdir(mode=0o700, exist_ok=True)
        reason = "" if folder.is_dir() else "something else has this name"
    except OSError as error:
        reason = error.strerror or str(error)
    if reason:
        raise ConfigError(
            f"The folder {folder} can't be made: {reason}.",
            hint="Correct what stands in the way, or choose another (AGENT_CONSOLE_DATA, XDG_STATE_HOME).",
            details={"folder": str(folder)},
        )
    return folder


def _missing(folder: Path) -> list[Path]:
    return list(takewhile(lambda step: not step.exists(), (folder, *folder.parents)))


def _user_folder(ask: Callable[[PlatformDirsABC], Path]) -> Path:
    from platformdirs import PlatformDirs

    try:
        # platformdirs warns when XDG_RUNTIME_DIR is unset or unsafe; its fall-back is sound and the warning
        # would land in the middle of the operator's screen.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ask(PlatformDirs(OWN, appauthor=False))
    except (RuntimeError, PermissionError) as error:
        reason = str(error)
    raise ConfigError(f"There is no folder to use: {reason}.", hint="Set HOME or the XDG variable to a full path.")
