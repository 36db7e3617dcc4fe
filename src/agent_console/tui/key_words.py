"""What a key does now, in words: those of its binding, unless the place where it works says otherwise."""

from typing import Protocol, runtime_checkable

from textual.binding import ActiveBinding


@runtime_checkable
class SaysWhatKeysDo(Protocol):
    """A key that turns something on and off does one of two things, and its words say which."""

    def words_now(self, action: str) -> str | None: ...


def words_of(active: ActiveBinding) -> str:
    words = active.node.words_now(active.binding.action) if isinstance(active.node, SaysWhatKeysDo) else None
    return active.binding.description if words is None else words
