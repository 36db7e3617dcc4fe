"""Choosing the profile and, for every setting, the highest source that says something about it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from agent_console.config import dsn
from agent_console.config.file import ConfigFile, read_config_file
from agent_console.config.folders import data_folder, full_path
from agent_console.config.settings import (
    BUILT_IN_PROFILE,
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
    Target,
)
from agent_console.config.sources import (
    Layer,
    command_line_layer,
    config_path,
    environment_layer,
    no_colour_layer,
    profile_layer,
    profile_names,
    read_command_line,
    read_environment,
    top_layer,
)
from agent_console.config.tables import ChosenTable, ProfileTable, SecretKind
from agent_console.domain.errors import ConfigError

T = TypeVar("T")

DEFAULT = Origin("default")
REQUESTS_PER_MINUTE = 6_000
ADDRESS_REQUESTS_PER_MINUTE = 12_000


def load_settings(given: Mapping[str, object]) -> Settings:
    command_line, environment = read_command_line(given), read_environment()
    path, path_origin = config_path(command_line)
    file = read_config_file(path, asked_for=path_origin != DEFAULT)
    name, name_origin = _chosen_profile(command_line, environment, file)
    layers = (
        command_line_layer(command_line),
        no_colour_layer(),
        environment_layer(environment),
        profile_layer(file, name),
        top_layer(file),
    )
    choice = _Choice(layers, {"profile": name_origin, "config_file": path_origin})
    return choice.settings(name, file)


def _chosen_profile(command_line: ChosenTable, environment: ChosenTable, file: ConfigFile) -> tuple[str, Origin]:
    if command_line.profile is not None:
        return command_line.profile, Origin("command line", "--profile")
    if environment.profile is not None:
        return environment.profile, Origin("environment", "AGENT_CONSOLE_PROFILE")
    if file.default_profile is not None:
        return file.default_profile, Origin("file", "default_profile", file.path)
    return BUILT_IN_PROFILE, DEFAULT


class _Choice:
    """Goes through the layers from the highest down and notes where each value was found."""

    def __init__(self, layers: Sequence[Layer], origin: dict[str, Origin]) -> None:
        self._layers = layers
        self._origin = origin

    def settings(self, name: str, file: ConfigFile) -> Settings:
        position = self._target_position(name)
        profile = self._profile(name, position)
        return Settings(
            profile=profile,
            theme=self._first_or("theme", lambda table: table.theme, default="dark"),
            mouse=self._first_or("mouse", lambda table: table.mouse, default=True),
            bell=self._first_or("bell", lambda table: table.bell, default=True),
            slow=self._first_or("slow", lambda table: table.slow, default=False),
            keymap=MappingProxyType(self._keymap()),
            trusted_proxies=self._trusted_proxies(),
            tls_cert=self._path("tls_cert", lambda table: table.tls_cert),
            tls_key=self._path("tls_key", lambda table: table.tls_key),
            requests_per_minute=self._first_or(
                "requests_per_minute", lambda table: table.requests_per_minute, default=REQUESTS_PER_MINUTE
            ),
            address_requests_per_minute=self._first_or(
                "address_requests_per_minute",
                lambda table: table.address_requests_per_minute,
                default=ADDRESS_REQUESTS_PER_MINUTE,
            ),
            config_file=file.path,
            profile_names=profile_names(file),
            origin=MappingProxyType(self._origin),
            set_aside=MappingProxyType(dict(_set_aside(self._layers[self._heard_to(position) :]))),
        )

    def _profile(self, name: str, position: int) -> Profile:
        heard = self._layers[: self._heard_to(position)]
        target = self._target(self._layers[position], heard)
        own = self._layers[position].origin("").source in {"file", "default"}
        return Profile(
            name=name,
            label=name if own else _address(target),
            target=target,
            team=self._first("team", lambda table: table.team),
            user=self._first("user", lambda table: table.user),
            read_only=self._first_or("read_only", lambda table: table.read_only, default=False),
            production=self._first_or("production", lambda table: table.production, default=False),
            colour=self._first("colour", lambda table: table.colour),
            token_source=self._secret("token", heard),
            password_source=self._secret("password", heard),
        )

    def _target_position(self, name: str) -> int:
        for position, layer in enumerate(self._layers):
            if layer.table.targets():
                return position
        raise ConfigError(
            f"Profile {name} does not say where to connect.",
            hint="Give it exactly one of dsn, url and embedded = true.",
            details={"profile": name},
        )

    def _heard_to(self, position: int) -> int:
        """A credential goes only to the address it was written for, and so does a listen_dsn: what stands with or
        below another address is left out. What came without an address, such as AGENT_CONSOLE_TOKEN alone, was
        given for this one."""
        below = range(position + 1, len(self._layers))
        return next((place for place in below if self._layers[place].table.targets()), len(self._layers))

    def _target(self, layer: Layer, heard: Sequence[Layer]) -> Target:
        table = layer.table
        if table.dsn is not None:
            self._origin["dsn"] = layer.origin("dsn")
            return Direct(table.dsn, self._first("listen_dsn", lambda table: table.listen_dsn, heard))
        if table.url is not None:
            self._origin["url"] = layer.origin("url")
            return Remote(table.url, self._ca_file(heard))
        self._origin["embedded"] = layer.origin("embedded")
        return Embedded(self._path("data", lambda table: table.data) or data_folder())

    def _ca_file(self, heard: Sequence[Layer]) -> Path | None:
        """Whoever says an address says who vouches for it; so does the environment, for any address."""
        said = [layer for layer in self._layers if layer in heard or layer.origin("").source == "environment"]
        return self._path("ca_file", lambda table: table.ca_file, said)

    def _path(
        self, key: str, read: Callable[[ProfileTable], str | None], layers: Sequence[Layer] | None = None
    ) -> Path | None:
        for layer in layers or self._layers:
            if (written := read(layer.table)) is not None:
                self._origin[key] = layer.origin(key)
                return full_path(written, key=key, start=layer.folder)
        self._origin[key] = DEFAULT
        return None

    def _secret(self, kind: SecretKind, heard: Sequence[Layer]) -> SecretSource | None:
        for layer in heard:
            for key, place in layer.table.secret_places(kind).items():
                self._origin[kind] = layer.origin(key)
                return _secret_source(layer, key, place)
        self._origin[kind] = DEFAULT
        return None

    def _keymap(self) -> dict[str, str]:
        keymap: dict[str, str] = {}
        for layer in reversed(self._layers):
            for binding, keys in (layer.table.keymap or {}).items():
                keymap[binding] = keys
                self._origin[f"keymap.{binding}"] = layer.origin("keymap")
        return keymap

    def _trusted_proxies(self) -> tuple[str, ...]:
        networks = self._first("trusted_proxies", lambda table: table.trusted_proxies)
        return tuple(networks.split(",")) if networks else ()

    def _first_or(self, key: str, read: Callable[[ProfileTable], T | None], *, default: T) -> T:
        value = self._first(key, read)
        return default if value is None else value

    def _first(
        self, key: str, read: Callable[[ProfileTable], T | None], layers: Sequence[Layer] | None = None
    ) -> T | None:
        for layer in layers or self._layers:
            value = read(layer.table)
            if value is not None:
                self._origin[key] = layer.origin(key)
                return value
        self._origin[key] = DEFAULT
        return None


def _secret_source(layer: Layer, key: str, place: str) -> SecretSource:
    if key.endswith("_file"):
        return SecretFile(full_path(place, key=key, start=layer.folder))
    if key.endswith("_env"):
        return SecretVariable(place)
    service, _, name = place.rpartition("/")
    return SecretKeyring(service, name)


def _set_aside(unheard: Sequence[Layer]) -> Iterator[tuple[str, Origin]]:
    for layer in unheard:
        table = layer.table
        listen = ("listen_dsn",) if table.listen_dsn is not None else ()
        for key in (
            *table.targets(),
            *listen,
            *table.secret_places("token"),
            *table.secret_places("password"),
        ):
            if layer.origin(key) != DEFAULT:
                yield key, layer.origin(key)


def _address(target: Target) -> str:
    match target:
        case Direct():
            return dsn.address(target.dsn.get_secret_value())
        case Remote():
            return target.url.partition("://")[2]
        case Embedded():
            return "embedded"
