"""Turns what a table refuses into one sentence that names the place, and what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TypeAlias, get_args

from pydantic import ValidationError

from agent_console.config.settings import Colour, Theme
from agent_console.config.tables import CommandLineTable, FileTable, ProfileTable
from agent_console.domain.errors import ConfigError

Location: TypeAlias = Sequence[int | str]

# Their values hold secrets, or what someone took for the place of a secret.
UNSHOWN = frozenset({"dsn", "listen_dsn", "url"})
UNSHOWN_KINDS = ("token", "password")


@dataclass(frozen=True, slots=True)
class Writing:
    """Where the values were written: how a key is called there, and which keys are known."""

    called: Callable[[Location], str]
    known: Callable[[Location], Iterable[str]]
    table: str
    """What a table is called there."""
    advice: str
    details: Mapping[str, str]


def in_file(path: Path) -> Writing:
    def called(location: Location) -> str:
        *table, key = location
        where = f" in [{'.'.join(map(str, table))}]" if table else ""
        return f'{path}: "{key}"{where}'

    def known(location: Location) -> Iterable[str]:
        return ProfileTable.model_fields if _in_profile(location) else FileTable.model_fields

    return Writing(called, known, "a table", f"Correct it in {path}.", {"file": str(path)})


def in_environment() -> Writing:
    return Writing(
        lambda location: variable(str(location[0])),
        lambda _location: (),
        'a JSON object such as {"jobs.cancel": "x"}',
        "Correct the variable, or unset it.",
        {},
    )


def on_command_line() -> Writing:
    return Writing(
        lambda location: option(str(location[0])),
        lambda _location: CommandLineTable.model_fields,
        "a table",
        "Correct the option; --help lists what there is.",
        {},
    )


def variable(key: str) -> str:
    return f"AGENT_CONSOLE_{key.upper()}"


def option(key: str) -> str:
    return f"--{key.replace('_', '-')}"


def explained(error: ValidationError, writing: Writing) -> ConfigError:
    """The first refusal as a sentence; the rest would only hide it."""
    first = error.errors(include_url=False)[0]
    location = [part for part in first["loc"] if part != "[key]"]
    details = {**writing.details, "key": ".".join(map(str, location))}
    if first["type"] == "extra_forbidden":
        return _unknown(location, writing, details)
    wanted = _wanted(first["type"], first["msg"], first.get("ctx", {}), writing.table)
    given: object = first["input"]
    message = f"{writing.called(location)} must be {wanted}{_instead(location, given)}."
    close = nearest(str(given), _choices(location)) if isinstance(given, str) else None
    return ConfigError(message, hint=f'Did you mean "{close}"?' if close else writing.advice, details=details)


def nearest(word: str, known: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    return next(iter(get_close_matches(word, list(known), n=1, cutoff=cutoff)), None)


def _unknown(location: Location, writing: Writing, details: dict[str, str]) -> ConfigError:
    key = str(location[-1])
    known = list(writing.known(location))
    if key in UNSHOWN_KINDS:
        hint = f"A secret is not written here; say where it is: {key}_file, {key}_env or {key}_keyring."
    elif key in ProfileTable.model_fields and not _in_profile(location):
        hint = "It belongs to a profile: put it under [profiles.NAME]."
    elif close := nearest(key, known):
        hint = f'Did you mean "{close}"?'
        details["nearest"] = close
    else:
        hint = f"Known here: {', '.join(known)}."
    return ConfigError(f"{writing.called(location)} is not a known key.", hint=hint, details=dict(details))


def _wanted(kind: str, message: str, context: Mapping[str, object], table: str) -> str:
    match kind:
        case "expected":
            return message
        case "bool_type" | "bool_parsing":
            return "true or false"
        case "string_type" | "string_sub_type":
            return "text in quotes"
        case "dict_type" | "model_type" | "model_attributes_type":
            return table
        case "literal_error":
            return f"one of {str(context['expected']).replace(chr(39), '')}"
        case _:
            return message.removeprefix("Input should be ")


def _instead(location: Location, given: object) -> str:
    key = str(location[-1])
    if key in UNSHOWN or key.startswith(UNSHOWN_KINDS) or "keymap" in location[:-1]:
        return ""
    match given:
        case bool():
            return f", not {str(given).lower()}"
        case str() if given.isprintable() and len(given) <= 60:
            return f', not "{given}"'
        case int() | float():
            return f", not {given}"
        case _:
            return ""


def _choices(location: Location) -> tuple[str, ...]:
    choices: dict[str, tuple[str, ...]] = {"theme": get_args(Theme), "colour": get_args(Colour)}
    return choices.get(str(location[-1]), ())


def _in_profile(location: Location) -> bool:
    return len(location) > 2 and location[0] == "profiles"
