"""Credentials at rest: encrypted with the server's key, bound to the one connector they belong to.

The key comes from the environment or from a file only its owner can read. Several keys may be given: the
first encrypts, all of them decrypt, so that a key can be changed without a gap.
"""

import base64
import binascii
import hashlib
import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pydantic import JsonValue, TypeAdapter

from agent_console.domain.errors import ConfigError, Conflict, Invalid
from agent_console.domain.ids import ConnectorId, TeamId
from agent_console.private_files import open_to_others

KEY_VARIABLE = "AGENT_CONSOLE_SERVER_KEY"
KEY_FILE_VARIABLE = "AGENT_CONSOLE_SERVER_KEY_FILE"
KEY_BYTES = 32
NONCE_BYTES = 12
FORM = b"\x01"
CREDENTIALS_BYTES = 65536

_OBJECT = TypeAdapter(dict[str, JsonValue])


@dataclass(frozen=True, repr=False)
class ServerKey:
    """One key. Its id is shown and stored next to what it sealed; it tells nothing about the key."""

    secret: bytes

    @classmethod
    def parse(cls, word: str, source: str) -> Self:
        try:
            secret = base64.b64decode(word + "=" * (-len(word) % 4), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            secret = b""
        if len(secret) != KEY_BYTES:
            raise ConfigError(
                f"{source} holds something that is not a key.",
                hint=f"A key is {KEY_BYTES} random bytes in base64url; separate several with commas.",
            )
        return cls(secret)

    @property
    def id(self) -> str:
        return hashlib.sha256(b"agent-console server key\x00" + self.secret).hexdigest()[:16]

    def __repr__(self) -> str:
        return f"ServerKey({self.id})"


@dataclass(frozen=True)
class Sealed:
    """What is stored: unreadable without the key that `key_id` names."""

    ciphertext: bytes
    key_id: str


@dataclass(frozen=True)
class ServerKeys:
    """The first key seals, all of them open."""

    keys: tuple[ServerKey, ...]

    @classmethod
    def parse(cls, words: str, source: str = KEY_VARIABLE) -> Self:
        return cls(tuple(ServerKey.parse(word.strip(), source) for word in words.split(",") if word.strip()))

    @property
    def first(self) -> ServerKey:
        if not self.keys:
            raise Conflict(
                "The server has no key to encrypt credentials with.",
                hint=f"Set {KEY_VARIABLE} to 32 random bytes in base64url where the server runs, "
                "or let the agents keep the credentials.",
            )
        return self.keys[0]

    def seal(self, credentials: Mapping[str, JsonValue], team_id: TeamId, connector_id: ConnectorId) -> Sealed:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        key, nonce = self.first, secrets.token_bytes(NONCE_BYTES)
        plain = _plain(credentials)
        body = AESGCM(key.secret).encrypt(nonce, plain, _owner(team_id, connector_id))
        return Sealed(FORM + nonce + body, key.id)

    def unseal(self, sealed: Sealed, team_id: TeamId, connector_id: ConnectorId) -> dict[str, JsonValue] | None:
        """None when the key is not here, or when this was not sealed for that connector."""
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        key = next((key for key in self.keys if key.id == sealed.key_id), None)
        if key is None or sealed.ciphertext[:1] != FORM:
            return None
        nonce, body = sealed.ciphertext[1 : 1 + NONCE_BYTES], sealed.ciphertext[1 + NONCE_BYTES :]
        try:
            plain = AESGCM(key.secret).decrypt(nonce, body, _owner(team_id, connector_id))
        except (InvalidTag, ValueError):
            return None
        return _OBJECT.validate_json(plain)


def _owner(team_id: TeamId, connector_id: ConnectorId) -> bytes:
    """Associated data: a ciphertext copied to another row does not open there."""
    return team_id.bytes + connector_id.bytes


def _plain(credentials: Mapping[str, JsonValue]) -> bytes:
    try:
        plain = json.dumps(dict(credentials), allow_nan=False).encode()
    except ValueError:
        plain = b""
    if not plain or len(plain) > CREDENTIALS_BYTES:
        problem = f"must be JSON of at most {CREDENTIALS_BYTES} bytes, with finite numbers"
        raise Invalid(
            "These credentials can't be kept.", details={"fields": [{"field": "credentials", "problem": problem}]}
        )
    return plain


def server_keys(environment: Mapping[str, str] = os.environ) -> ServerKeys:
    """The keys as they are now; the variable wins over the file. None at all is no mistake yet."""
    if words := environment.get(KEY_VARIABLE, "").strip():
        return ServerKeys.parse(words)
    if path := environment.get(KEY_FILE_VARIABLE, "").strip():
        return ServerKeys.parse(_read(Path(path)), f"The key file {path}")
    return ServerKeys(())


def _read(path: Path) -> str:
    try:
        if open_to_others(path, path.stat().st_mode):
            raise ConfigError(f"Others can read the key file {path}.", hint=f"Run: chmod 600 {path}")
        return path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"The key file {path} can't be read.", hint=f"Check {KEY_FILE_VARIABLE}.") from error


def ensure_key_file(path: Path) -> Path:
    """Make the file with a new key if there is none; two programs at once agree on one key."""
    fresh = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    if path.exists():
        return path
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(base64.urlsafe_b64encode(secrets.token_bytes(KEY_BYTES)).decode() + "\n")
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(fresh, path)
    except FileExistsError:
        pass
    finally:
        fresh.unlink()
    return path
