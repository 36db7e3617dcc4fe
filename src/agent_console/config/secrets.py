"""Reading a secret from its place, at the moment it is needed, and only then."""

from __future__ import annotations

import importlib
import os
import stat
from collections.abc import Callable
from pathlib import Path

from pydantic import SecretStr

from agent_console.config.settings import SecretFile, SecretKeyring, SecretSource, SecretVariable
from agent_console.domain.errors import ConfigError
from agent_console.private_files import open_to_others

MOST_BYTES = 64 * 1024


def read_secret(source: SecretSource, what: str) -> SecretStr:
    """The secret; `what` begins the sentence of every refusal. No refusal holds any part of the secret."""
    match source:
        case SecretFile(path):
            text = _from_file(path, what)
        case SecretVariable(name):
            text = _from_variable(name, what)
        case SecretKeyring():
            text = _from_keyring(source, what)
    # An editor ends the last line; a secret of several lines or with control characters is a wrong file, and
    # would break the header or the address it is put in.
    text = text.rstrip("\r\n")
    if not text:
        raise ConfigError(f"{what} is empty in the {source}.", hint="Write the secret there.")
    if not text.isprintable():
        raise ConfigError(
            f"{what} in the {source} is not one line of text.",
            hint="It must hold the secret and nothing else.",
        )
    return SecretStr(text)


def _from_file(path: Path, what: str) -> str:
    try:
        return _private_text(path, what)
    except (OSError, UnicodeDecodeError) as error:
        reason = "it is not text" if isinstance(error, UnicodeDecodeError) else (error.strerror or str(error))
    raise ConfigError(
        f"{what} can't be read from {path}: {reason}.",
        hint="Write the secret into that file, or name another place for it.",
        details={"file": str(path)},
    )


def _private_text(path: Path, what: str) -> str:
    # Without O_NONBLOCK a named pipe would hang the program; the mode is asked of the opened file, so that
    # nobody can swap it in between.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise ConfigError(
                f"{what} can't be read from {path}: it is not a file.",
                hint="Write the secret into a file of its own.",
                details={"file": str(path)},
            )
        if open_to_others(path, mode):
            raise ConfigError(
                f"{what} is refused: others can read or change {path} (mode {stat.S_IMODE(mode):04o}).",
                hint=f"Run: chmod 600 {path}",
                details={"file": str(path)},
            )
        return file.read(MOST_BYTES).decode()


def _from_variable(name: str, what: str) -> str:
    if name in os.environ:
        return os.environ[name]
    raise ConfigError(
        f"{what} should come from the variable {name}, which is not set.",
        hint=f"Set {name}, or name another place for it in the profile.",
        details={"variable": name},
    )


def _from_keyring(source: SecretKeyring, what: str) -> str:
    get_password = _keyring_reader(what)
    try:
        secret = get_password(source.service, source.name)
    except Exception as error:  # every keyring backend has errors of its own
        reason = type(error).__name__
    else:
        if secret is not None:
            return secret
        reason = "there is no such entry"
    raise ConfigError(
        f"{what} can't be read from the {source}: {reason}.",
        hint=f"Store it with: keyring set {source.service} {source.name}",
    )


def _keyring_reader(what: str) -> Callable[[str, str], str | None]:
    try:
        get_password: Callable[[str, str], str | None] = importlib.import_module("keyring").get_password
    except ImportError:
        pass
    else:
        return get_password
    raise ConfigError(
        f"{what} should come from a keyring, but the keyring package is not installed.",
        hint="Install it with: pip install 'agent-console[keyring]', or use a file or a variable.",
    )
