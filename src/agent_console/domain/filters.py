"""The filter language: `status:dead_letter agent:atlas age:>1h !tool:photostats word`.

Qualifiers are exact. One that is said several times asks for any of its values, one behind a `!` for none of
them; every word has to be found. What has blanks or a colon in it is put in quotes.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from functools import cached_property

from pydantic import AfterValidator

from agent_console.domain.errors import WrongId
from agent_console.domain.ids import Id

FILTER_LENGTH = 500

_TERM = re.compile(r'(?P<no>!?)(?:(?P<name>[A-Za-z_]\w*):)?(?P<value>"(?:[^"\\]|\\["\\])*"|[^\s"]*)(?=\s|$)')
# A quote that is still open takes all that follows.
_UNREADABLE = re.compile(r'!?(?:[A-Za-z_]\w*:)?"(?:[^"\\]|\\.)*\\?\Z|\S*', re.S)
_PLAIN = re.compile(r'[^\s":!\\][^\s":\\]*')
_PLAIN_VALUE = re.compile(r'[^\s"\\]+')
_ESCAPED = re.compile(r'\\(["\\])')
_SPAN = re.compile(r"(\d{1,6})([smhdw])")
_SPANS = re.compile(r"([<>])((?:\d{1,6}[smhdw])+)")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_LONGEST_SECONDS = 100 * 366 * 86_400


class Known(StrEnum):
    """Where the values come from that are offered while somebody types."""

    LISTED = "listed"
    AGENTS = "agents"
    JOB_TYPES = "job types"
    NOWHERE = "nowhere"


@dataclass(frozen=True)
class Qualifier:
    """What can be said before a colon. `listed` are all the values there are, where they are few and known.

    `also` is another name that people say for it, `id_of` the kind of id that its values are.
    """

    name: str
    words: str
    listed: tuple[str, ...] = ()
    known: Known = Known.NOWHERE
    is_age: bool = False
    also: str = ""
    id_of: type[Id] | None = None

    def spelled(self, value: str) -> str:
        """One of few as it is listed, in whatever way else their kind understands it: canceled is cancelled."""
        try:
            return str(type(self.listed[0])(value.lower())) if self.listed else value
        except ValueError:
            return value

    def wrong(self, value: str, negated: bool) -> str | None:
        """What is wrong with this value."""
        if self.is_age:
            if negated:
                return "an age is turned round with < or >, not with !"
            return None if _seconds(value) else "an age is such as >1h or <2d (s, m, h, d, w)"
        if self.listed and self.spelled(value) not in self.listed:
            return f"{self.name} is one of: {', '.join(self.listed)}"
        if self.id_of is not None:
            try:
                self.id_of.parse(value)
            except WrongId as wrong:
                return wrong.message.rstrip(".")
        return None


class FilterMistake(ValueError):
    """What can't be read, and the place in the text where that begins."""

    def __init__(self, problem: str, at: int) -> None:
        super().__init__(f"{problem} (at character {at + 1})")
        self.problem = problem
        self.at = at


@dataclass(frozen=True)
class Term:
    """One thing that is asked for; without a name it is a word."""

    name: str
    value: str
    negated: bool = False

    def __str__(self) -> str:
        return f"{'!' if self.negated else ''}{self.name}{':' if self.name else ''}{self._quoted()}"

    def _quoted(self) -> str:
        if (_PLAIN_VALUE if self.name else _PLAIN).fullmatch(self.value):
            return self.value
        return '"' + self.value.replace("\\", r"\\").replace('"', r"\"") + '"'


@dataclass(frozen=True)
class Filter:
    terms: tuple[Term, ...] = ()

    def __str__(self) -> str:
        return " ".join(map(str, self.terms))

    def wanted(self, name: str) -> tuple[str, ...]:
        return self._values(name, negated=False)

    def unwanted(self, name: str) -> tuple[str, ...]:
        return self._values(name, negated=True)

    @property
    def words(self) -> tuple[str, ...]:
        return self.wanted("")

    @property
    def unwanted_words(self) -> tuple[str, ...]:
        return self.unwanted("")

    def older_than(self, name: str) -> int | None:
        """The least age in seconds; of several the one that says most."""
        return max((seconds for sign, seconds in self._ages(name) if sign == ">"), default=None)

    def younger_than(self, name: str) -> int | None:
        return min((seconds for sign, seconds in self._ages(name) if sign == "<"), default=None)

    def _ages(self, name: str) -> Iterable[tuple[str, int]]:
        return (found for value in self.wanted(name) if (found := _seconds(value)) is not None)

    def _values(self, name: str, *, negated: bool) -> tuple[str, ...]:
        found = (term.value for term in self.terms if term.name == name and term.negated is negated)
        return tuple(dict.fromkeys(found))


def _seconds(value: str) -> tuple[str, int] | None:
    if (read := _SPANS.fullmatch(value)) is None:
        return None
    seconds = sum(int(count) * _SECONDS[unit] for count, unit in _SPAN.findall(read[2]))
    return (read[1], seconds) if seconds <= _LONGEST_SECONDS else None


@dataclass(frozen=True)
class Offer:
    """What may stand between two places of the text, for whoever is typing there.

    `of` is the qualifier whose values are asked for, `values` those that are known without asking anybody.
    """

    start: int
    end: int
    typed: str
    of: Qualifier | None
    values: tuple[str, ...]


@dataclass(frozen=True)
class Filterable:
    """What one kind of thing can be filtered by, said once: reading, help and what is offered come from it."""

    qualifiers: tuple[Qualifier, ...]
    words: str
    """What words are looked for in."""

    def named(self, name: str) -> Qualifier | None:
        return next((one for one in self.qualifiers if name and name in (one.name, one.also)), None)

    @property
    def help(self) -> str:
        """For the description of a request's field, and so for the command line's help."""
        listed = ", ".join(f"{qualifier.name}: {qualifier.words}" for qualifier in self.qualifiers)
        return f"Words are looked for in {self.words}; !x: is none of it. {listed}."

    @cached_property
    def checked(self) -> AfterValidator:
        """For a request's field: the text has to be readable."""
        return AfterValidator(self._checked)

    def _checked(self, text: str) -> str:
        self.read(text)
        return text

    def read(self, text: str) -> Filter:
        """The text as a filter; FilterMistake tells where it can't be read."""
        terms: list[Term] = []
        place = 0
        while place < len(text):
            if text[place].isspace():
                place += 1
                continue
            term, place = self._term_at(text, place)
            terms.append(term)
        return Filter(tuple(terms))

    def _term_at(self, text: str, place: int) -> tuple[Term, int]:
        if (found := _TERM.match(text, place)) is None:
            quote = text.find('"', place)
            raise FilterMistake("here is a quote that is not closed, or not at the beginning", quote)
        name, value = (found["name"] or "").lower(), _unquoted(found["value"])
        strange = next((n for n, letter in enumerate(found[0]) if not letter.isprintable()), None)
        if strange is not None:
            raise FilterMistake("this character can't be looked for", place + strange)
        begin = found.start("value")
        if not name:
            if not value:
                raise FilterMistake("something has to follow here", begin)
            if ":" in value and not found["value"].startswith('"'):
                raise FilterMistake("what has a colon in it is put in quotes", begin)
            return Term("", value, bool(found["no"])), found.end()
        qualifier = self.named(name)
        if qualifier is None:
            raise FilterMistake(self._unknown(name), found.start("name"))
        if not value:
            raise FilterMistake(f"something has to follow {name}:", begin)
        if (problem := qualifier.wrong(value, bool(found["no"]))) is not None:
            raise FilterMistake(problem, begin)
        return Term(qualifier.name, qualifier.spelled(value), bool(found["no"])), found.end()

    def _unknown(self, name: str) -> str:
        names = [qualifier.name for qualifier in self.qualifiers]
        near = get_close_matches(name, names, n=1)
        rest = f"did you mean {near[0]}:?" if near else f"there are {', '.join(f'{known}:' for known in names)}"
        return f"there is no {name[:40]}: here; {rest}"

    def offer(self, text: str, cursor: int) -> Offer:
        """What may be typed where the cursor stands."""
        start = _begin_of_term(text, cursor)
        start += text.startswith("!", start, cursor)
        name, colon, value = text[start:cursor].partition(":")
        if not colon:
            return Offer(start, cursor, name, None, tuple(f"{one.name}:" for one in self.qualifiers))
        qualifier = self.named(name.lower())
        begin = start + len(name) + 1
        if qualifier is None:
            return Offer(begin, cursor, value, None, ())
        return Offer(begin, cursor, value, qualifier, (">", "<") if qualifier.is_age else qualifier.listed)


def _begin_of_term(text: str, cursor: int) -> int:
    """Where the term begins that is typed at the cursor; blanks in quotes part none."""
    place = 0
    while (end := _end_of_term(text, place)) < cursor:
        place = end + 1
    return place


def _end_of_term(text: str, place: int) -> int:
    found = _TERM.match(text, place) or _UNREADABLE.match(text, place)
    return len(text) if found is None else found.end()


def _unquoted(value: str) -> str:
    return _ESCAPED.sub(r"\1", value[1:-1]) if value.startswith('"') else value


def quoted(value: str) -> str:
    """A value as it stands behind a colon."""
    return str(Term("x", value)).removeprefix("x:")
