"""Making what a program said fit to be stored: no NUL, no half characters, no more than there is room for."""

import re

from pydantic import JsonValue

from agent_console.domain.redact import NESTING_LIMIT

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


class NotJson(ValueError):
    """A value that can't be told as JSON; it completes "it …"."""


def storable(value: object, levels: int = NESTING_LIMIT) -> JsonValue:
    """The same JSON with every character that PostgreSQL can't keep replaced. Raises NotJson for what is none."""
    match value:
        case str():
            return storable_text(value)
        case list() | dict() if levels == 0:
            raise NotJson(f"is nested more than {NESTING_LIMIT} levels deep, or holds itself")
        case list():
            return [storable(part, levels - 1) for part in value]
        case dict():
            return {_name(name): storable(part, levels - 1) for name, part in value.items()}
        case None | int() | float():
            return value
        case _:
            raise NotJson(f"holds a value of type {type(value).__name__}, which JSON does not know")


def _name(name: object) -> str:
    if isinstance(name, str):
        return storable_text(name)
    raise NotJson(f"holds a name of type {type(name).__name__}, and names in JSON are text")


def storable_text(text: str) -> str:
    return _UNSTORABLE.sub(REPLACEMENT, text)


def storable_facts(value: object) -> dict[str, JsonValue]:
    cleaned = storable(value)
    if isinstance(cleaned, dict):
        return cleaned
    raise NotJson(f"is of type {type(value).__name__} and no JSON object")


def shortened(text: str, length: int) -> str:
    """At most so many characters; what is left out is counted."""
    if len(text) <= length:
        return text
    room = length - 30
    return f"{text[:room]}… +{len(text) - room} characters"


def shortened_to_end(text: str, length: int) -> str:
    """At most so many of the last characters; what is left out before them is counted."""
    if len(text) <= length:
        return text
    room = length - 30
    return f"+{len(text) - room} characters …{text[-room:]}"
