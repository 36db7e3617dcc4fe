"""The profiles of the configuration file, as places the console can go to."""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent_console.cli.local_facts import kind_of, local_facts, place_of
from agent_console.config import Embedded, Remote, Settings, load
from agent_console.domain.errors import ConfigError, ConsoleError
from agent_console.tui.places import OWN_TOKEN, KnownPlace, PlaceChosen

if TYPE_CHECKING:
    from agent_console.cli.opening import Say
    from agent_console.domain.doctor_facts import LocalFacts
    from agent_console.repository.port import Repository
    from agent_console.tui.link import Opening
    from agent_console.tui.setup import Setup

SettingsOpening = Callable[[Settings, "Say"], "AbstractAsyncContextManager[Repository]"]

# What was said on the command line about where to go, and as whom, was said of the first place only.
FOR_ANY_PLACE = ("config", "theme", "slow", "read_only")


def setup_from(
    options: Mapping[str, object],
    opening: SettingsOpening,
    *,
    first: Mapping[str, object] | None = None,
    name: str | None = None,
) -> "Setup":
    """How to go where the options lead. `first` are the options the console was started with.

    What has a `name` of its own is no profile: there is no way from it to others, since none would lead back.
    """
    from agent_console.cli.keys_file import keymap_of
    from agent_console.tui.setup import Setup

    settings = load(options)
    return Setup(
        opening=lambda say: opening(settings, say),
        profile=name or settings.profile.label,
        production=settings.profile.production,
        colour=settings.profile.colour,
        read_only=settings.profile.read_only,
        theme=settings.theme,
        keymap=keymap_of(settings),
        places=None if name else ConfiguredPlaces(options if first is None else first, opening),
        examine=lambda: _examined(options, has_profile=name is None),
    )


def _examined(options: Mapping[str, object], *, has_profile: bool) -> "LocalFacts":
    facts = local_facts(options)
    return facts if has_profile else facts.model_copy(update={"profile": None, "disk": None})


@dataclass(frozen=True)
class ConfiguredPlaces:
    """`first` are the options the console was started with."""

    first: Mapping[str, object]
    opening: SettingsOpening

    def listed(self) -> tuple[KnownPlace, ...]:
        start = load(self.first)
        own = _known(start.profile.label, start)
        others = {name: self._of_name(name) for name in start.profile_names if name != own.name}
        if own.name not in start.profile_names:
            return (own, *others.values())
        return tuple(others.get(name, own) for name in start.profile_names)

    def _of_name(self, name: str) -> KnownPlace:
        try:
            return _known(name, load(self._options(PlaceChosen(name))))
        except ConsoleError as error:
            return KnownPlace(name, "", problem=str(error))

    def setup_of(self, chosen: PlaceChosen) -> "Setup":
        options = self._options(chosen)
        if chosen.team is not None and isinstance(load(options).profile.target, Remote):
            raise ConfigError(OWN_TOKEN)
        return setup_from(options, self.opening, first=self.first)

    def _options(self, chosen: PlaceChosen) -> dict[str, object]:
        start = load(self.first)
        if chosen.name == start.profile.label:
            options = dict(self.first)
        else:
            options = {name: self.first[name] for name in FOR_ANY_PLACE if name in self.first}
            options["profile"] = chosen.name
        return options if chosen.team is None else options | {"team": chosen.team}


def _known(name: str, settings: Settings) -> KnownPlace:
    profile = settings.profile
    is_embedded = isinstance(profile.target, Embedded)
    return KnownPlace(
        name=name,
        kind=kind_of(profile),
        leads_to=place_of(profile),
        production=profile.production,
        read_only=profile.read_only,
        one_team=isinstance(profile.target, Remote),
        # Nobody starts a database just to see whether it could be started.
        look=None if is_embedded else _looking_at(settings),
    )


def _looking_at(settings: Settings) -> "Opening":
    def look(say: "Say") -> "AbstractAsyncContextManager[Repository]":
        from agent_console.cli.opening import opened

        return opened(settings.profile, say)

    return look
