"""Policy as a file: YAML that a person reviews and a program applies.

    format: 1
    routes:
      - from: atlas
        to: beacon
        policy: allowed
        notes: nightly reports

Read in one pass over the parser's events, so that nothing is ever built that the format does not know: no
anchors, no tags, nothing deeper than a route. Every word is text as it stands: an agent may be called `no` or `1`.
Every problem is told at once, each with its line.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import yaml
from pydantic import TypeAdapter, ValidationError

from agent_console.domain.errors import ConsoleError, Invalid, JSONValue, TooLarge, WrongId
from agent_console.domain.ids import AgentId
from agent_console.domain.kinds import RoutePolicy
from agent_console.domain.policy_plans import POLICY_FILE_BYTES
from agent_console.domain.problems import problem_of
from agent_console.domain.routes import AgentWord, Notes
from agent_console.domain.safe_text import safe_text, shortened

FORMAT = "1"
PROBLEMS_TOLD = 100
WORD_SHOWN = 60
NOTHING = ("", "~", "null")
POLICIES = tuple(policy.value for policy in RoutePolicy)
HEADING = (
    "# Which agent may ask which. A pair that is not here is blocked.\n"
    "# See what a change would do:  agent-console routes apply FILE --dry-run\n"
)

# Written in C they are some ten times as fast; what they read and write is the same.
LOADER = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
DUMPER = yaml.CSafeDumper if yaml.__with_libyaml__ else yaml.SafeDumper
AGENT_WORD: TypeAdapter[str] = TypeAdapter(AgentWord)
NOTES: TypeAdapter[str] = TypeAdapter(Notes)


@dataclass(frozen=True)
class FileRoute:
    """A route as a file has it: agents by name or id."""

    from_agent: str
    to_agent: str
    policy: RoutePolicy
    notes: str | None
    line: int = 0


@dataclass(frozen=True)
class Problem:
    line: int
    what: str


def refused_file(problems: Sequence[Problem]) -> ConsoleError:
    """All that is wrong with a file, in the order of its lines."""
    told: list[JSONValue] = [
        {"field": f"line {problem.line}", "problem": problem.what}
        for problem in sorted(problems, key=lambda problem: problem.line)[:PROBLEMS_TOLD]
    ]
    count = "1 thing is" if len(problems) == 1 else f"{len(problems):,} things are"
    return Invalid(
        f"The policy file can't be applied: {count} wrong with it.",
        hint="Nothing was changed.",
        details={"fields": told},
    )


def quoted(word: str) -> str:
    return f'"{shortened(word, WORD_SHOWN)}"'


class _Stop(Exception):
    """What can't be read any further."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(what)
        self.problem = Problem(line, what)


@dataclass
class _Reading:
    events: Iterator[yaml.Event]
    problems: list[Problem] = field(default_factory=list)

    def next(self) -> yaml.Event:
        event = next(self.events)
        if getattr(event, "anchor", None) is not None:
            raise _Stop(_line(event), "anchors and aliases (& and *) are not used in policy files")
        if getattr(event, "tag", None) is not None:
            raise _Stop(_line(event), "tags (!) are not used in policy files")
        return event

    def wrong(self, line: int, what: str) -> None:
        self.problems.append(Problem(line, what))

    def routes(self) -> list[FileRoute]:
        """The whole document, or _Stop where its shape is not the format's."""
        self._begin()
        found: list[FileRoute] = []
        seen: set[str] = set()
        line = 1
        while isinstance(event := self.next(), yaml.ScalarEvent):
            key, line = event.value, _line(event)
            if key in seen:
                self.wrong(line, f"{quoted(key)} stands here twice")
            seen.add(key)
            if key == "format":
                self._format()
            elif key == "routes":
                found = self._list()
            else:
                raise _Stop(line, f"{quoted(key)} is no key of a policy file; there are: format, routes")
        if not isinstance(event, yaml.MappingEndEvent):
            raise _Stop(_line(event), "a key was expected: format or routes")
        for missing in sorted({"format", "routes"} - seen):
            self.wrong(line, f'"{missing}" is missing')
        self._end()
        return found

    def _begin(self) -> None:
        event = self.next()
        while isinstance(event, yaml.StreamStartEvent | yaml.DocumentStartEvent):
            event = self.next()
        if not isinstance(event, yaml.MappingStartEvent):
            raise _Stop(_line(event), "a policy file begins with the keys format and routes")

    def _end(self) -> None:
        self.next()
        if not isinstance(event := self.next(), yaml.StreamEndEvent):
            raise _Stop(_line(event), "a policy file is one document")

    def _format(self) -> None:
        event = self.next()
        if not isinstance(event, yaml.ScalarEvent) or event.value != FORMAT:
            raise _Stop(_line(event), f"format {FORMAT} is the only one this version of agent-console knows")

    def _list(self) -> list[FileRoute]:
        event = self.next()
        if not isinstance(event, yaml.SequenceStartEvent):
            raise _Stop(_line(event), "routes is a list; an empty one is written []")
        found: list[FileRoute] = []
        while not isinstance(event := self.next(), yaml.SequenceEndEvent):
            if not isinstance(event, yaml.MappingStartEvent):
                raise _Stop(_line(event), "a route has the keys from, to and policy")
            if (route := self._route(_line(event))) is not None:
                found.append(route)
        return found

    def _route(self, line: int) -> FileRoute | None:
        before = len(self.problems)
        words: dict[str, str] = {}
        while not isinstance(key := self.next(), yaml.MappingEndEvent):
            value = self.next() if isinstance(key, yaml.ScalarEvent) else key
            if not isinstance(key, yaml.ScalarEvent) or not isinstance(value, yaml.ScalarEvent):
                raise _Stop(_line(value), "the values of a route are words, nothing with parts of its own")
            if key.value in words:
                self.wrong(_line(key), f"{quoted(key.value)} stands here twice")
            elif key.value not in ("from", "to", "policy", "notes"):
                known = "from, to, policy, notes"
                self.wrong(_line(key), f"{quoted(key.value)} is no key of a route; there are: {known}")
            words[key.value] = "" if key.value == "notes" and _is_nothing(value) else value.value
            self._check(key.value, words[key.value], _line(value))
        for missing in ("from", "to", "policy"):
            if missing not in words:
                self.wrong(line, f'the route that begins here has no "{missing}"')
        if len(self.problems) > before:
            return None
        policy = RoutePolicy(words["policy"])
        return FileRoute(words["from"], words["to"], policy, words.get("notes") or None, line)

    def _check(self, key: str, value: str, line: int) -> None:
        if key == "policy" and value not in POLICIES:
            self.wrong(line, f"{quoted(value)} is no policy; there are: {', '.join(POLICIES)}")
        elif key in ("from", "to", "notes"):
            try:
                (NOTES if key == "notes" else AGENT_WORD).validate_python(value)
            except ValidationError as error:
                self.wrong(line, f'"{key}": {problem_of(error.errors()[0])}')


def _is_nothing(value: yaml.ScalarEvent) -> bool:
    """A plain word has no style, which the parser in C and the one in Python say differently."""
    return not value.style and value.value in NOTHING


def _line(event: yaml.Event) -> int:
    return 1 if event.start_mark is None else event.start_mark.line + 1


def read_policy(text: str) -> tuple[FileRoute, ...]:
    """The routes of a file, or everything that is wrong with it."""
    if len(text.encode("utf-8", "surrogatepass")) > POLICY_FILE_BYTES:
        raise TooLarge(f"A policy file has at most {POLICY_FILE_BYTES:,} bytes.", hint="Nothing was changed.")
    reading = _Reading(yaml.parse(text, Loader=LOADER))
    try:
        routes = reading.routes()
    except _Stop as stop:
        raise refused_file([*reading.problems, stop.problem]) from None
    except yaml.YAMLError as error:
        raise refused_file([*reading.problems, _unreadable(error, text)]) from None
    if reading.problems:
        raise refused_file(reading.problems)
    return tuple(routes)


def _unreadable(error: yaml.YAMLError, text: str) -> Problem:
    if isinstance(error, yaml.reader.ReaderError):
        # The reader in C counts bytes.
        before = text.encode()[: error.position].decode() if yaml.__with_libyaml__ else text[: error.position]
        return Problem(len(f"{before}.".splitlines()), f"this is not YAML: {error.reason}")
    mark = getattr(error, "problem_mark", None)
    what = getattr(error, "problem", None) or "it can't be read"
    return Problem(1 if mark is None else mark.line + 1, f"this is not YAML: {what}")


def written_policy(routes: Sequence[FileRoute]) -> str:
    """The file of a policy: sorted by names, so that the same policy is the same file."""
    listed = [_entry(route) for route in sorted(routes, key=_place)]
    lines = (line for entry in listed for value in entry.values() for line in value.split("\n"))
    harmless = all(safe_text(line) == line for line in lines)
    # What a terminal may not be sent is written as an escape, and everything else beside it too.
    body = yaml.dump({"routes": listed}, Dumper=DUMPER, sort_keys=False, allow_unicode=harmless, width=10_000)
    return f"{HEADING}format: {FORMAT}\n{body}"


def _place(route: FileRoute) -> tuple[str, str, str, str]:
    return route.from_agent.casefold(), route.to_agent.casefold(), route.from_agent, route.to_agent


def _entry(route: FileRoute) -> dict[str, str]:
    entry = {"from": route.from_agent, "to": route.to_agent, "policy": route.policy.value}
    return entry if route.notes is None else entry | {"notes": route.notes}


def agent_in_file(name: str, agent_id: AgentId) -> str:
    """The name; the id where the name would be read as an id."""
    try:
        AgentId.parse(name)
    except WrongId:
        return name
    return str(agent_id)
