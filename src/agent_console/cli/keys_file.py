"""The keys of the console from a file of their own, `keys.toml` beside the configuration file.

    "list.filter" = "f"
    "app.quit" = ["q", "f10"]

What the configuration file itself says of a key counts for more.
"""

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from agent_console.domain.errors import ConfigError

if TYPE_CHECKING:
    from agent_console.config import Settings

NAME = "keys.toml"


def keymap_of(settings: "Settings") -> Mapping[str, str]:
    return {**read_keys_file(settings.config_file.parent / NAME), **settings.keymap}


def read_keys_file(path: Path) -> dict[str, str]:
    """By binding id its keys, with commas between; an absent file says nothing."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise ConfigError(
            f"The keys in {path} can't be read: {why}.", hint="Correct the file or remove it."
        ) from error
    return dict(_flat(path, "", table))


def _flat(path: Path, above: str, table: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """An id has dots in it, which are tables to TOML unless it stands in quotes."""
    for name, value in table.items():
        match value:
            case dict():
                yield from _flat(path, f"{above}{name}.", value)
            case str() if value.strip():
                yield f"{above}{name}", value
            case list() if value and all(isinstance(key, str) and key.strip() for key in value):
                yield f"{above}{name}", ",".join(map(str, value))
            case _:
                raise ConfigError(
                    f'{path}: {above}{name} must be a key such as "x" or a list of keys.',
                    hint="List every id: agent-console keys",
                )
