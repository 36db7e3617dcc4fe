"""The configuration as it may be shown to anyone: every value, its origin, no secret."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import SecretStr

from agent_console.config import dsn
from agent_console.config.secrets import read_secret
from agent_console.config.settings import (
    Direct,
    Embedded,
    Profile,
    Remote,
    SecretSource,
    Settings,
    ShownValue,
)
from agent_console.domain.errors import ConfigError

NOT_SET = "not set"


def shown_values(settings: Settings) -> list[ShownValue]:
    values = [ShownValue(name, value, settings.origin[name]) for name, value in _values(settings)]
    aside = [
        ShownValue(name, "set aside: the address comes from a higher place", origin)
        for name, origin in settings.set_aside.items()
    ]
    return values + aside


def _values(settings: Settings) -> Iterator[tuple[str, str]]:
    profile = settings.profile
    yield (
        "config_file",
        f"{settings.config_file} ({'there' if settings.config_file.exists() else 'not there'})",
    )
    yield "profile", profile.name
    yield from _target(profile)
    yield "team", profile.team or NOT_SET
    yield "user", profile.user or NOT_SET
    yield "token", _secret(profile.token_source, "The token")
    yield "password", _secret(profile.password_source, "The password")
    yield "read_only", _switch(profile.read_only)
    yield "production", _switch(profile.production)
    yield "colour", profile.colour or NOT_SET
    yield "theme", settings.theme
    yield "mouse", _switch(settings.mouse)
    yield "bell", _switch(settings.bell)
    yield "slow", _switch(settings.slow)
    yield "trusted_proxies", ", ".join(settings.trusted_proxies) or NOT_SET
    yield "tls_cert", str(settings.tls_cert or NOT_SET)
    yield "tls_key", str(settings.tls_key or NOT_SET)
    yield "requests_per_minute", str(settings.requests_per_minute)
    yield "address_requests_per_minute", str(settings.address_requests_per_minute)
    for binding, keys in settings.keymap.items():
        yield f"keymap.{binding}", keys


def _target(profile: Profile) -> Iterator[tuple[str, str]]:
    match profile.target:
        case Direct(address, listen):
            yield "dsn", _address(address)
            yield "listen_dsn", NOT_SET if listen is None else _address(listen)
        case Remote(url, ca_file):
            yield "url", url
            yield "ca_file", str(ca_file or NOT_SET)
        case Embedded(folder):
            yield "embedded", "true"
            yield "data", str(folder)


def _address(address: SecretStr) -> str:
    return dsn.redacted(address.get_secret_value())


def _secret(source: SecretSource | None, what: str) -> str:
    if source is None:
        return NOT_SET
    try:
        read_secret(source, what)
    except ConfigError as error:
        return f"{source} (not usable: {error.message})"
    return f"{source} (there)"


def _switch(value: bool) -> str:
    return "true" if value else "false"
