"""Everything that can be done by name: one registry behind the command line and the palette.

Panes and lists come from what there is to show, acts from the declared operations, the rest from the keys that
work where one is. What a role may not do, or a read-only profile, is not in it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum, auto
from typing import TYPE_CHECKING

from agent_console.domain.ids import KINDS as ID_KINDS
from agent_console.domain.list_order import ListOrder
from agent_console.repository.operations import NOUNS, AnyOperation
from agent_console.tui.actions import WITHOUT_A_LIST, key_field, list_actions, record_of, row_actions
from agent_console.tui.themes import NAMES as THEMES

if TYPE_CHECKING:
    from agent_console.domain.permissions import Role
    from agent_console.tui.panes.list_kind import ListKind

BY_HAND = frozenset({"approvals", "routes"})
"""What is decided or edited on a screen that shows what it does first, never by a derived form."""


class Does(Enum):
    """What becomes of a command."""

    PANE = auto()
    OPERATION = auto()
    KEY = auto()
    OPEN = auto()
    THEME = auto()
    MOUSE = auto()
    FILTER = auto()
    FIND = auto()
    ORDER = auto()


@dataclass(frozen=True)
class Command:
    """`name` is what is typed, `argument` what may follow, `values` those of it that are known; unless there are
    `others`, nothing else may."""

    name: str
    summary: str
    does: Does
    what: str = ""
    argument: str = ""
    values: tuple[str, ...] = ()
    needs_argument: bool = False
    others: bool = False


@dataclass(frozen=True)
class LiveKey:
    """A key that works where one is."""

    key: str
    id: str
    words: str


OWN = (
    Command("theme", "Another look", Does.THEME, argument="NAME", values=tuple(THEMES), needs_argument=True),
    Command(
        "mouse", "The mouse on or off", Does.MOUSE, argument="on|off", values=("on", "off"), needs_argument=True
    ),
    Command("open", "One thing by its id", Does.OPEN, argument="ID", needs_argument=True),
)
OF_LISTS = (
    Command("filter", "Only rows that match; nothing is all of them", Does.FILTER, argument="FILTER"),
    Command("find", "Go to the next row with a word", Does.FIND, argument="WORD"),
    Command("sort", "From which end", Does.ORDER, argument="ORDER", values=tuple(ListOrder), needs_argument=True),
)


def every_command(
    kinds: "Mapping[str, ListKind]",
    panes: Iterable[str],
    role: "Role | None",
    keys: Iterable[LiveKey],
    *,
    on_a_list: bool,
) -> tuple[Command, ...]:
    """By name, each name once: what was named first stays."""
    found: dict[str, Command] = {}
    for command in (
        *(_going_to(name) for name in dict.fromkeys((*panes, *kinds))),
        *OWN,
        *(OF_LISTS if on_a_list else ()),
        *_acts(kinds, role),
        *(Command(_typed(key.words), f"The key {key.key}", Does.KEY, key.id) for key in keys),
    ):
        found.setdefault(command.name, command)
    return tuple(found.values())


def _going_to(name: str) -> Command:
    title = name.replace("_", " ")
    return Command(name.replace("_", "-"), NOUNS.get(name, f"Go to {title}"), Does.PANE, name)


def _typed(words: str) -> str:
    return words.lower().replace("…", "").replace(",", "").replace("/", " ").strip()


def _acts(kinds: "Mapping[str, ListKind]", role: "Role | None") -> Iterable[Command]:
    if role is None:
        return
    for noun, kind in kinds.items():
        if noun in BY_HAND:
            continue
        for action in list_actions(kind.list_operation, role):
            yield from _act(action.operation, "")
        for action in row_actions(kind.list_operation, role):
            if action.operation.noun == noun:
                yield from _act(action.operation, _id_of(kind.list_operation))


def _act(operation: AnyOperation, argument: str) -> Iterable[Command]:
    verb, noun = operation.action.replace("_", "-"), operation.noun.replace("_", "-")
    summary = f"{operation.summary.rstrip('.')} !" if operation.danger else operation.summary.rstrip(".")
    yield Command(f"{noun} {verb}", summary, Does.OPERATION, operation.name, argument)
    if operation.noun in WITHOUT_A_LIST:
        # What is done to the one queue needs no noun.
        yield Command(verb, summary, Does.OPERATION, operation.name, argument)


def _id_of(listing: AnyOperation) -> str:
    key = key_field(listing)
    kind = record_of(listing).model_fields[key].annotation
    prefix = getattr(kind, "prefix", "")
    return f"{prefix}_…" if prefix else key.upper()


def noun_of(kinds: "Mapping[str, ListKind]", text: str) -> str | None:
    """What kind of thing an id is the id of."""
    id_kind = ID_KINDS.get(text.strip().lower().rpartition("_")[0])
    listed = ((noun, kind.list_operation) for noun, kind in kinds.items() if kind.get_operation is not None)
    fitting = (
        noun
        for noun, listing in listed
        if record_of(listing).model_fields[key_field(listing)].annotation is id_kind
    )
    return None if id_kind is None else next(fitting, None)


class UnknownCommand(ValueError):
    """A sentence for whoever typed it."""


def command_in(commands: Iterable[Command], line: str) -> tuple[Command, str]:
    """The command of a line and what follows it, as it was typed; a beginning is enough where only one command
    begins so."""
    known = tuple(commands)
    words = " ".join(line.split())
    exact = [command for command in known if _begins(command, words.lower())]
    if exact:
        command = max(exact, key=lambda command: len(command.name))
        parted = line.split(maxsplit=len(command.name.split()))
        return command, "".join(parted[len(command.name.split()) :]).strip()
    begun = [command for command in known if command.name.startswith(words.lower())]
    if words and len(begun) == 1:
        return begun[0], ""
    raise UnknownCommand(_unknown(known, words, begun))


def _begins(command: Command, words: str) -> bool:
    """Where nothing may follow, nothing does: what stands there was meant as something else."""
    return words == command.name or (bool(command.argument) and words.startswith(f"{command.name} "))


def _unknown(known: tuple[Command, ...], words: str, begun: list[Command]) -> str:
    if not words:
        return "Type a command; Tab shows what there is."
    if begun:
        return f"That could be {', '.join(command.name for command in begun[:4])}."
    near = get_close_matches(words.lower(), [command.name for command in known], n=1, cutoff=0.5)
    first = get_close_matches(words.lower().split(maxsplit=1)[0], [command.name for command in known], n=1)
    found = near or first
    return f"There is no command {words[:40]}.{f' Did you mean {found[0]}?' if found else ''}"


@dataclass(frozen=True)
class Choices:
    """What may stand from `start` to the end of a line."""

    start: int
    values: tuple[str, ...]


def completions(commands: Iterable[Command], line: str) -> Choices:
    """Commands that begin so; behind a whole one, what may follow it."""
    known = tuple(commands)
    text = line.lower()
    whole = [command for command in known if text.startswith(f"{command.name} ") and command.values]
    if whole:
        command = max(whole, key=lambda command: len(command.name))
        start = len(command.name) + 1
        begun = text[start:]
        values = (value for value in command.values if value.lower().startswith(begun) and value.lower() != begun)
        return Choices(start, tuple(values))
    return Choices(0, tuple(sorted(command.name for command in known if command.name.startswith(text))))


def fuzzy(commands: Iterable[Command], typed: str) -> tuple[Command, ...]:
    """Those whose letters come in this order, the closest first; all of them when nothing is typed."""
    ranked = (
        (rank, command) for command in commands if (rank := _rank(typed.lower().split(), command)) is not None
    )
    return tuple(command for _, command in sorted(ranked, key=lambda pair: (pair[0], pair[1].name)))


def _rank(words: list[str], command: Command) -> int | None:
    """Small is close: in the name, at a beginning, in one piece; far is only in what it says of itself."""
    total = 0
    for word in words:
        name, place = command.name, command.name.find(word)
        if place >= 0:
            total += 0 if place == 0 or name[place - 1] in " -" else 5
        elif (stretch := _stretch(word, name)) is not None:
            total += 10 + stretch
        elif word in command.summary.lower():
            total += 100
        else:
            return None
    return total


def _stretch(word: str, name: str) -> int | None:
    """Over how many letters of the name the letters of the word are spread."""
    place, first = -1, None
    for letter in word:
        place = name.find(letter, place + 1)
        if place < 0:
            return None
        first = place if first is None else first
    return place - (first or 0)
