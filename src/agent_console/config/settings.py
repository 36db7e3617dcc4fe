"""What the rest of the program sees of the configuration: frozen values, secrets only as places to look."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from pydantic import SecretStr

Theme: TypeAlias = Literal["dark", "light", "ansi", "mono"]
Colour: TypeAlias = Literal["red", "green", "yellow", "blue", "magenta", "cyan", "white"]
Source: TypeAlias = Literal["command line", "environment", "file", "default"]

BUILT_IN_PROFILE = "local"
"""Chosen when nobody names one, and there without a file."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value was written."""

    source: Source
    name: str = ""
    """The option, the variable or the table, as the user wrote it."""
    file: Path | None = None

    def __str__(self) -> str:
        if self.file is not None:
            return f"{self.file} {self.name or '(top level)'}"
        return f"{self.source} {self.name}".rstrip()


@dataclass(frozen=True, slots=True)
class SecretFile:
    """A secret kept in a file that only its owner may read."""

    path: Path

    def __str__(self) -> str:
        return f"file {self.path}"


@dataclass(frozen=True, slots=True)
class SecretVariable:
    """A secret kept in an environment variable."""

    name: str

    def __str__(self) -> str:
        return f"variable {self.name}"


@dataclass(frozen=True, slots=True)
class SecretKeyring:
    """A secret kept in the desktop's or the system's keyring."""

    service: str
    name: str

    def __str__(self) -> str:
        return f"keyring {self.service}/{self.name}"


SecretSource: TypeAlias = SecretFile | SecretVariable | SecretKeyring


@dataclass(frozen=True, slots=True)
class Direct:
    """PostgreSQL itself. The DSNs are as configured; `Profile.connection` puts the password in."""

    dsn: SecretStr
    listen_dsn: SecretStr | None = None
    """For the one LISTEN connection, when `dsn` leads to a transaction pooler."""


@dataclass(frozen=True, slots=True)
class Remote:
    """An agent-console server."""

    url: str
    ca_file: Path | None = None
    """Certificates that alone may vouch for it."""


@dataclass(frozen=True, slots=True)
class Embedded:
    """The PostgreSQL that comes with the package, on this machine."""

    data_folder: Path


Target: TypeAlias = Direct | Remote | Embedded


@dataclass(frozen=True, slots=True)
class Profile:
    """One control plane to work on, and as whom."""

    name: str
    label: str
    """What to call it on the screen: its name, or the address when another displaced the profile's own."""
    target: Target
    team: str | None
    user: str | None
    read_only: bool
    production: bool
    colour: Colour | None
    token_source: SecretSource | None
    password_source: SecretSource | None

    def token(self) -> SecretStr | None:
        """The token, read now; None when no place is configured. Raises ConfigError when it isn't there."""
        return _read(self.token_source, f"The token of profile {self.name}")

    def password(self) -> SecretStr | None:
        """The database password kept outside the DSN, read now; None when no place for it is configured."""
        return _read(self.password_source, f"The password of profile {self.name}")

    def connection(self) -> Direct | None:
        """The direct target ready to connect; None when not direct."""
        return self.connected(self.target) if isinstance(self.target, Direct) else None

    def connected(self, target: Direct) -> Direct:
        """The target with the password read now and put in."""
        from agent_console.config.dsn import with_password

        password = self.password()
        if password is None:
            return target
        listen = target.listen_dsn
        return Direct(
            dsn=with_password(target.dsn, password, keep_own=False),
            listen_dsn=None if listen is None else with_password(listen, password, keep_own=True),
        )


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that was configured, resolved for one profile."""

    profile: Profile
    theme: Theme
    mouse: bool
    bell: bool
    slow: bool
    keymap: Mapping[str, str]
    """Binding id to its keys, comma-separated."""
    trusted_proxies: tuple[str, ...]
    """Networks of the proxies before `serve`."""
    tls_cert: Path | None
    tls_key: Path | None
    """What `serve` speaks TLS with; with neither it speaks plain HTTP."""
    requests_per_minute: int
    address_requests_per_minute: int
    """How often one credential, and one address, may ask `serve` for anything; 0 is no limit."""
    config_file: Path
    profile_names: tuple[str, ...]
    """Every profile one can switch to, the built-in one included."""
    origin: Mapping[str, Origin]
    """By setting name; a remapped key is `keymap.<binding id>`."""
    set_aside: Mapping[str, Origin]
    """Addresses and credentials of the profile that a higher address displaced: never sent elsewhere."""


@dataclass(frozen=True, slots=True)
class ShownValue:
    """A line of `agent-console config show`."""

    name: str
    value: str
    origin: Origin


def _read(source: SecretSource | None, what: str) -> SecretStr | None:
    if source is None:
        return None
    from agent_console.config.secrets import read_secret

    return read_secret(source, what)
