"""An agent's key in a file that only its owner can read, and the nonce that is kept until the key has arrived."""

import os
import secrets
from pathlib import Path

from agent_console.domain.errors import ConfigError

NONCE_ENDING = ".registering"


class KeyFile:
    """The place of one agent's key. A key that is there is never written over."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def nonce_path(self) -> Path:
        return self.path.with_name(self.path.name + NONCE_ENDING)

    def require_absent(self) -> None:
        """Before a token is used up for a key that could not be kept."""
        if os.path.lexists(self.path):
            raise self._taken()

    def nonce(self) -> str:
        """The same until the key is there, also for a program that is started again."""
        try:
            _write_new(self.nonce_path, secrets.token_urlsafe(32))
        except FileExistsError:
            pass
        except OSError as error:
            raise self._unwritable(error) from error
        try:
            return self.nonce_path.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise self._unwritable(error) from error

    def keep(self, key: str) -> None:
        """Whole or not at all: another program never reads half a key."""
        written = self.path.with_name(f".{self.path.name}.{secrets.token_hex(8)}")
        try:
            _write_new(written, f"{key}\n")
            try:
                os.link(written, self.path)
            finally:
                written.unlink()
            self.nonce_path.unlink(missing_ok=True)
        except FileExistsError as error:
            raise self._taken() from error
        except OSError as error:
            raise self._unwritable(error) from error

    def _taken(self) -> ConfigError:
        return ConfigError(
            f"There is a key in {self.path} already.",
            hint="Name another file with --key-file, or remove that one if its agent is gone for good.",
            details={"file": str(self.path)},
        )

    def _unwritable(self, error: Exception) -> ConfigError:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        return ConfigError(
            f"The key can't be kept in {self.path}: {reason}.",
            hint="Name another file with --key-file. The same command goes on where this one stopped.",
            details={"file": str(self.path)},
        )


def _write_new(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(text)
        file.flush()
        os.fsync(descriptor)
