"""The tables of the configuration file, key by key; the command line and the environment know the same keys.

Nothing has a default here: None is "not given", so that the next source can answer.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, Literal, TypeAlias
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, SecretStr
from pydantic_core import PydanticCustomError

from agent_console.config import dsn
from agent_console.config.settings import Colour, Theme

TargetKey: TypeAlias = Literal["dsn", "url", "embedded"]
SecretKind: TypeAlias = Literal["token", "password"]

_SECRET_ITSELF = re.compile(r"(?:agt|art|wkt|opt)_key_")


def expected(what: str) -> PydanticCustomError:
    """A refusal that completes "<key> must be …", never with the value, which may be a secret."""
    return PydanticCustomError("expected", "{what}", {"what": what})


def _one_line(text: str) -> str:
    if not text or not text.isprintable():
        raise expected("one line of text")
    return text


def _slug(text: str) -> str:
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,62}", text):
        raise expected("a team's short name: small letters, digits and hyphens, 63 at most")
    return text


def _profile_name(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", text):
        raise expected("a profile name of letters, digits, dots, hyphens and underscores, 63 at most")
    return text


def _postgres(value: SecretStr) -> SecretStr:
    if not dsn.understood(value.get_secret_value()):
        raise expected(
            "a PostgreSQL address such as postgresql://user@host/database or host=… dbname=…, "
            "with special characters written as %40 and the like"
        )
    return value


def _web_address(text: str) -> str:
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        raise expected("a web address such as https://console.example.com") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname or not _one_line(text) or " " in text:
        raise expected("a web address such as https://console.example.com")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise expected("a web address without user, password or query; a token has its own keys (token_file, …)")
    return text.rstrip("/")


def _place(text: str) -> str:
    if _SECRET_ITSELF.search(text):
        raise expected("the place where the secret is kept, not the secret itself")
    return _one_line(text)


def _keyring_entry(text: str) -> str:
    service, _, name = _place(text).rpartition("/")
    if not service or not name:
        raise expected('a keyring entry written as "service/name"')
    return text


def _keys(value: object) -> object:
    keys = value if isinstance(value, list) else [value]
    if not keys or not all(isinstance(key, str) and key.strip() for key in keys):
        raise expected('a key such as "x" or a list of keys, under a binding id in quotes: "jobs.cancel" = "x"')
    return ",".join(key for key in keys if isinstance(key, str))


def _networks(value: object) -> object:
    """Addresses and networks; everybody is no proxy, and would let everybody choose an address."""
    words = value.split(",") if isinstance(value, str) else value
    example = 'addresses or networks such as "127.0.0.1" or ["10.0.0.0/8", "::1"], and not everybody'
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise expected(example)
    try:
        networks = [ipaddress.ip_network(word.strip()) for word in words]
    except ValueError:
        raise expected(example) from None
    if any(network.prefixlen == 0 for network in networks):
        raise expected(example)
    return ",".join(map(str, networks))


def _per_minute(number: int) -> int:
    if not 0 <= number <= 10_000_000:
        raise expected("a whole number from 0 to 10000000")
    return number


Line: TypeAlias = Annotated[str, AfterValidator(_one_line)]
Slug: TypeAlias = Annotated[str, AfterValidator(_slug)]
ProfileName: TypeAlias = Annotated[str, AfterValidator(_profile_name)]
PostgresAddress: TypeAlias = Annotated[SecretStr, AfterValidator(_postgres)]
WebAddress: TypeAlias = Annotated[str, AfterValidator(_web_address)]
Place: TypeAlias = Annotated[str, AfterValidator(_place)]
KeyringEntry: TypeAlias = Annotated[str, AfterValidator(_keyring_entry)]
Keys: TypeAlias = Annotated[str, BeforeValidator(_keys)]
Networks: TypeAlias = Annotated[str, BeforeValidator(_networks)]
PerMinute: TypeAlias = Annotated[int, AfterValidator(_per_minute)]


class Preferences(BaseModel):
    """Keys that may stand at the top level of the file, for all profiles, or in one of them."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, hide_input_in_errors=True)

    theme: Theme | None = None
    """dark, light, ansi (the terminal's own 16 colours) or mono (no colour at all)."""

    mouse: bool | None = None
    """Whether the mouse works; off leaves selecting text to the terminal."""

    bell: bool | None = None
    """Whether a new approval rings while nobody looks at the terminal."""

    slow: bool | None = None
    """For slow lines: at most 10 frames a second, no animation, no blinking."""

    keymap: dict[str, Keys] | None = None
    """Binding id to key or keys; a profile adds to the top level, binding by binding."""

    team: Slug | None = None
    """Short name of the team to work in."""

    user: Line | None = None
    """Who acts, when connected to PostgreSQL directly; a server knows it from the token."""

    read_only: bool | None = None
    """Take every action that changes something off the menu."""


class ProfileTable(Preferences):
    """One [profiles.NAME]: exactly one of dsn, url and embedded, and what goes with it."""

    dsn: PostgresAddress | None = None
    """PostgreSQL to connect to directly; may hold the password, better kept in one of password_*."""

    listen_dsn: PostgresAddress | None = None
    """A way to the same PostgreSQL for the one LISTEN connection, when dsn leads to a transaction pooler."""

    url: WebAddress | None = None
    """An agent-console server to connect to."""

    embedded: bool | None = None
    """Use the PostgreSQL that comes with the package; false is the same as leaving the key out."""

    data: Place | None = None
    """Folder of the embedded PostgreSQL."""

    token_file: Place | None = None
    """File that holds the token for url; nobody else may be able to read it."""

    token_env: Place | None = None
    """Name of the variable that holds the token for url."""

    token_keyring: KeyringEntry | None = None
    """Keyring entry, as service/name, that holds the token for url."""

    password_file: Place | None = None
    """File that holds the password for dsn; nobody else may be able to read it."""

    password_env: Place | None = None
    """Name of the variable that holds the password for dsn."""

    password_keyring: KeyringEntry | None = None
    """Keyring entry, as service/name, that holds the password for dsn."""

    production: bool | None = None
    """Show this profile in its own colour, so that it can't be taken for another."""

    colour: Colour | None = None
    """Colour of the profile's name in the header."""

    ca_file: Place | None = None
    """Certificates, in PEM, that alone may vouch for the server at url; without it, those of this machine may."""

    tls_cert: Place | None = None
    """Certificate, with its chain, that `serve` shows."""

    tls_key: Place | None = None
    """Private key of tls_cert; not everybody may be able to read it."""

    requests_per_minute: PerMinute | None = None
    """How often one credential may ask `serve` for anything; 0 is no limit."""

    address_requests_per_minute: PerMinute | None = None
    """How often one address may ask `serve` for anything; 0 is no limit."""

    trusted_proxies: Networks | None = None
    """Proxies before `serve`, addresses and networks, whose X-Forwarded-For is believed; [] trusts none."""

    def targets(self) -> tuple[TargetKey, ...]:
        """Which of the three ways to a control plane are given."""
        given: dict[TargetKey, bool] = {
            "dsn": self.dsn is not None,
            "url": self.url is not None,
            "embedded": self.embedded is True,
        }
        return tuple(key for key, there in given.items() if there)

    def secret_places(self, kind: SecretKind) -> dict[str, str]:
        """The places given for a token or a password, by key."""
        places = {
            "token_file": self.token_file,
            "token_env": self.token_env,
            "token_keyring": self.token_keyring,
            "password_file": self.password_file,
            "password_env": self.password_env,
            "password_keyring": self.password_keyring,
        }
        return {key: place for key, place in places.items() if place is not None and key.startswith(kind)}


class ChosenTable(ProfileTable):
    """What the command line and the environment may say: which profile, and anything a profile says."""

    profile: ProfileName | None = None
    """Name of the profile to use."""


class CommandLineTable(ChosenTable):
    """The options; values come as text, so that "true" is true."""

    model_config = ConfigDict(strict=False)

    config: Line | None = None
    """Another configuration file."""


class FileTable(Preferences):
    """The whole file."""

    default_profile: ProfileName | None = None
    """Profile to use when none is asked for."""

    profiles: dict[ProfileName, ProfileTable] = {}
    """The control planes one works with, by name."""
