"""What is held of a conversation: stretches of which every message is known, and the gaps between them.

A page says of a range of seqs that these and no others of the thread are in it; ranges that touch become one, in
whatever order pages arrive. So no message is ever there twice, and none is missing without a gap that says so.
"""

from bisect import bisect_left
from dataclasses import dataclass
from itertools import pairwise

from agent_console.domain.messages import Message, SeqPage

MOST_HELD = 1_000
NEWEST_KEPT = 50
"""However far away one reads, so many of the newest stay: what is said next is appended to them."""


@dataclass(frozen=True)
class Stretch:
    """All messages of the thread from `low` to `high`, both included; a `low` of 0 is the thread's beginning."""

    low: int
    high: int
    messages: tuple[Message, ...] = ()

    def touches(self, other: "Stretch") -> bool:
        return self.low <= other.high + 1 and other.low <= self.high + 1

    def joined(self, other: "Stretch") -> "Stretch":
        by_seq = {message.seq: message for message in (*self.messages, *other.messages)}
        return Stretch(
            min(self.low, other.low),
            max(self.high, other.high),
            tuple(by_seq[seq] for seq in sorted(by_seq)),
        )


def newest(page: SeqPage[Message]) -> Stretch:
    """The page that was asked for without a position, or around one."""
    messages = page.items[::-1]
    low = messages[0].seq if messages and page.next_before_seq is not None else 0
    return Stretch(low, messages[-1].seq if messages else 0, messages)


def before(seq: int, page: SeqPage[Message]) -> Stretch:
    messages = page.items[::-1]
    low = messages[0].seq if messages and page.next_before_seq is not None else 0
    return Stretch(low, max(low, seq - 1), messages)


def after(seq: int, page: SeqPage[Message]) -> Stretch:
    high = page.items[-1].seq if page.items else seq
    return Stretch(seq + 1 if seq else 0, high, page.items)


@dataclass(frozen=True)
class Gap:
    """Messages that are not held. Seqs are shared by all threads, so `at_most` is all that can be said."""

    after: int
    before: int

    @property
    def at_most(self) -> int:
        return self.before - self.after - 1


@dataclass(frozen=True)
class Held:
    """Stretches in their order; the last one reaches up to the newest message that is known."""

    stretches: tuple[Stretch, ...] = ()

    @property
    def newest_seq(self) -> int | None:
        """None before anything was read."""
        return self.stretches[-1].high if self.stretches else None

    @property
    def oldest_seq(self) -> int | None:
        """What an older page has to come before; None when nothing is older."""
        if not self.stretches or self.stretches[0].low == 0:
            return None
        return self.stretches[0].low

    @property
    def messages(self) -> tuple[Message, ...]:
        return tuple(message for stretch in self.stretches for message in stretch.messages)

    @property
    def gaps(self) -> tuple[Gap, ...]:
        return tuple(Gap(above.high, below.low) for above, below in pairwise(self.stretches))

    def covers(self, seq: int) -> bool:
        """Whether it is known which message this is, or that there is none."""
        return any(stretch.low <= seq <= stretch.high for stretch in self.stretches)

    def with_stretch(self, come: Stretch) -> "Held":
        apart = [stretch for stretch in self.stretches if not stretch.touches(come)]
        for stretch in self.stretches:
            if stretch.touches(come):
                come = come.joined(stretch)
        return Held(tuple(sorted((*apart, come), key=lambda stretch: stretch.low)))

    def trimmed(self, around: int, most: int = MOST_HELD) -> "Held":
        """Lets go of what is furthest from this seq; it becomes a gap, or what is asked for again above."""
        messages = self.messages
        if len(messages) <= most:
            return self
        room = most - NEWEST_KEPT
        middle = bisect_left(messages, around, key=lambda message: message.seq)
        first = max(0, min(middle - room // 2, len(messages) - room))
        near = {message.seq for message in messages[first : first + room]}
        kept = near | {message.seq for message in messages[-NEWEST_KEPT:]}
        return Held(tuple(part for stretch in self.stretches for part in _cut(stretch, kept)))


def _cut(stretch: Stretch, kept: set[int]) -> list[Stretch]:
    """The parts of a stretch that are kept; where it was not cut it reaches as far as before."""
    parts: list[list[Message]] = []
    previous_kept = False
    for message in stretch.messages:
        if message.seq in kept:
            if not previous_kept:
                parts.append([])
            parts[-1].append(message)
        previous_kept = message.seq in kept
    return [_part_of(stretch, tuple(part)) for part in parts]


def _part_of(stretch: Stretch, messages: tuple[Message, ...]) -> Stretch:
    low = stretch.low if messages[0] is stretch.messages[0] else messages[0].seq
    high = stretch.high if messages[-1] is stretch.messages[-1] else messages[-1].seq
    return Stretch(low, high, messages)
