"""Making what a program said fit to be stored: no NUL, no half characters, no more than there is room for."""

import re

from pydantic import JsonValue

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def storable(value: JsonValue) -> JsonValue:
    """The same JSON with every character that PostgreSQL can't keep replaced."""
    match value:
        case str():
            return storable_text(value)
        case list():
            return [storable(part) for part in value]
        case dict():
            return {storable_text(name): storable(part) for name, part in value.items()}
        case _:
            return value


def storable_text(text: str) -> str:
    return _UNSTORABLE.sub(REPLACEMENT, text)


def storable_facts(value: JsonValue) -> dict[str, JsonValue]:
    cleaned = storable(value)
    return cleaned if isinstance(cleaned, dict) else {}


def shortened(text: str, length: int) -> str:
    """At most so many characters; what is left out is counted."""
    if len(text) <= length:
        return text
    room = length - 30
    return f"{text[:room]}… +{len(text) - room} characters"
