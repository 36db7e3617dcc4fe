"""The part of a long text where some words are, and where in that part they are.

Marks are places, never characters: the text may hold anything, also what looks like a mark.
"""

import re
from dataclasses import dataclass

SNIPPET_LENGTH = 160
BEFORE_THE_HIT = 40
MARKS = 20

_TERM = re.compile(r'(-?)(?:"([^"]*)"|(\S+))')
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Snippet:
    text: str
    marks: tuple[tuple[int, int], ...]


def searched_words(asked: str) -> tuple[str, ...]:
    """The words that have to be there: not those after a minus, and not the `or` between two."""
    found: dict[str, None] = {}
    for minus, phrase, word in _TERM.findall(asked):
        if not minus and word.lower() != "or":
            found |= dict.fromkeys(_WORD.findall(phrase or word))
    return tuple(found)


def snippet_of(content: str, words: tuple[str, ...]) -> Snippet:
    """It begins a little before the first hit. Without one it is the beginning of the text."""
    if not words:
        return Snippet(content[:SNIPPET_LENGTH], ())
    # A longer word first: of two that begin alike, the whole one is marked.
    either = "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))
    pattern = re.compile(rf"(?<!\w)(?:{either})(?!\w)", re.IGNORECASE)
    first = pattern.search(content)
    start = 0 if first is None else max(0, first.start() - BEFORE_THE_HIT)
    text = content[start : start + SNIPPET_LENGTH]
    marks = [hit.span() for hit in pattern.finditer(text)]
    return Snippet(text, tuple(marks[:MARKS]))
