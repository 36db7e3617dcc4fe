"""Every key there is, by the id under which it can be remapped, and what is wrong with a keymap."""

import pkgutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module

from textual.binding import Binding
from textual.dom import DOMNode

import agent_console.tui

EVERYWHERE = frozenset({"app", "pane"})
IN_A_LIST = frozenset({"list", "table", "find"})


@dataclass(frozen=True)
class DeclaredKey:
    id: str
    keys: tuple[str, ...]
    words: str

    @property
    def place(self) -> str:
        """Where it works; `app` and `pane` are everywhere."""
        return self.id.partition(".")[0]

    @property
    def pressed(self) -> frozenset[str]:
        """The keys as Textual calls them: / is slash to it."""
        return frozenset(_pressed(key) for key in self.keys)

    def lives_with(self, other: "DeclaredKey") -> bool:
        """Whether both may work at the same time, so that one key would have to do two things."""
        places = {self.place, other.place}
        return len(places) == 1 or bool(places & EVERYWHERE) or places <= IN_A_LIST


def every_key() -> tuple[DeclaredKey, ...]:
    """All that any widget or screen of the console declares, each id once."""
    for module in pkgutil.walk_packages(agent_console.tui.__path__, "agent_console.tui."):
        import_module(module.name)
    found: dict[str, DeclaredKey] = {}
    for owner in _classes(DOMNode):
        for binding in owner.__dict__.get("BINDINGS", ()):
            if owner.__module__.startswith("agent_console.") and isinstance(binding, Binding) and binding.id:
                declared = DeclaredKey(binding.id, _split(binding.key), binding.description)
                found.setdefault(binding.id, declared)
    return tuple(sorted(found.values(), key=lambda key: key.id))


def _classes(owner: type[DOMNode]) -> Iterator[type[DOMNode]]:
    """Those nearest to the top first: what a subclass only words anew is known by its first words."""
    waiting, seen = [owner], {owner}
    while waiting:
        one = waiting.pop(0)
        yield one
        new = [sub for sub in one.__subclasses__() if sub not in seen]
        seen |= {*new}
        waiting += new


def _split(keys: str) -> tuple[str, ...]:
    return tuple(key.strip() for key in keys.split(",") if key.strip())


def _pressed(key: str) -> str:
    return next(iter(Binding.make_bindings([Binding(key, "")]))).key


def remapped(known: Iterable[DeclaredKey], keymap: Mapping[str, str]) -> tuple[DeclaredKey, ...]:
    return tuple(
        DeclaredKey(key.id, _split(keymap[key.id]), key.words) if key.id in keymap else key for key in known
    )


def keymap_problems(keymap: Mapping[str, str], known: tuple[DeclaredKey, ...] | None = None) -> tuple[str, ...]:
    """A sentence for every id that nothing has, and for every key that would have to do two things."""
    if not keymap:
        return ()
    declared = every_key() if known is None else known
    names = [key.id for key in declared]
    problems = [_unknown(name, names) for name in keymap if name not in names]
    now = remapped(declared, keymap)
    shared = {key.id: key.pressed for key in declared}
    told: set[frozenset[str]] = set()
    for changed in (key for key in now if key.id in keymap):
        for other in now:
            pair = frozenset({changed.id, other.id})
            # What both had before is meant: `q` leaves what is open, and the console when nothing is.
            meant = shared[changed.id] & shared[other.id]
            both = [key for key in changed.keys if _pressed(key) in other.pressed - meant]
            if both and len(pair) == 2 and pair not in told and changed.lives_with(other):
                told.add(pair)
                problems.append(f"{both[0]} is the key of {changed.id} and of {other.id}: only one of them works.")
    return tuple(problems)


def _unknown(name: str, names: list[str]) -> str:
    near = get_close_matches(name, names, n=1)
    return f"There is no key with the id {name[:60]}.{f' Did you mean {near[0]}?' if near else ''}"
