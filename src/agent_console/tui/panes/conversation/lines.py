"""How a conversation reads: a line that says who wrote what to whom and when, and the words behind a bar.

The words are laid out once for each width; only the line above them changes with time.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from textual.content import Content

from agent_console.domain.ids import AgentId, Id
from agent_console.domain.kinds import ActorType
from agent_console.domain.messages import Message
from agent_console.domain.spans import ago
from agent_console.tui.agent_text import agent_block, agent_text, system_text
from agent_console.tui.panes.conversation.held import Gap, Held

BAR = "│ "
FOLDED_LINES = 8
UNFOLDED_LINES = 4_000
"""So many are laid out while a key press waits for it; a message of line breaks alone would have 65,536."""
FOLDED_CHARACTERS = 1_000
"""A folded message is cut before it is laid out: how long it is must not cost anything."""
TEXT_CELLS = 118
"""Lines longer than this are hard to read, however wide the screen is."""
CLOCK_FROM = 100
"""From this many cells on the time of day stands beside the age."""
NAME_SHOWN = 30
NAMED = 3
TOP = "top"
AUTHORS: dict[ActorType, tuple[str, str]] = {
    ActorType.HUMAN: ("◆ person", "$text-accent"),
    ActorType.AGENT: ("● agent", "$text-success"),
    ActorType.SYSTEM: ("■ system", "$foreground-muted"),
}
FOUND = "reverse"


def key_of(item: "Item") -> str:
    match item:
        case Message():
            return f"#{item.seq}"
        case Gap():
            return f"gap {item.after}"
        case _:
            return TOP


@dataclass(frozen=True)
class Beginning:
    """What stands above the first message that is held."""

    is_known: bool


Item = Message | Gap | Beginning


def items_of(held: Held) -> tuple[Item, ...]:
    if not held.messages:
        return ()
    items: list[Item] = [Beginning(is_known=held.oldest_seq is None)]
    for place, stretch in enumerate(held.stretches):
        if place:
            items.append(Gap(held.stretches[place - 1].high, stretch.low))
        items += stretch.messages
    return tuple(items)


def short_id(of: Id) -> str:
    """The end of an id: its beginning is the time, which many share."""
    return f"…{str(of)[-6:]}"


def addressed_to(message: Message, names: Mapping[AgentId, str]) -> str:
    if message.broadcast:
        return "every agent"
    shown = [names.get(agent_id, short_id(agent_id)) for agent_id in message.to_agent_ids[:NAMED]]
    more = len(message.to_agent_ids) - NAMED
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


def head_line(message: Message, names: Mapping[AgentId, str], now: datetime, width: int) -> Content:
    kind, style = AUTHORS[message.author_type]
    line = system_text(f"#{message.seq} ", "$foreground-muted") + system_text(f"{kind} ", style)
    if message.author_type is not ActorType.SYSTEM:
        line += agent_text(message.author, "bold", limit=NAME_SHOWN)
    if to := addressed_to(message, names):
        line += system_text(" → ", "$foreground-muted") + agent_text(to, "bold", limit=3 * NAME_SHOWN)
    if message.intervention:
        line += system_text(" intervened", "$text-warning")
    if message.run_id is not None:
        line += system_text(f" run {short_id(message.run_id)}", "$foreground-muted")
    if message.payload:
        line += system_text(" +payload", "$foreground-muted")
    return _with_age(line, _age(message.created_at, now, width), width)


def _age(moment: datetime, now: datetime, width: int) -> Content:
    clock = f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S}  " if width >= CLOCK_FROM else ""
    return system_text(f"{clock}{ago(moment, now)}", "$foreground-muted")


def _with_age(line: Content, age: Content, width: int) -> Content:
    room = max(1, width - age.cell_length - 2)
    shown = line.truncate(room, ellipsis=True)
    return shown.pad_right(room - shown.cell_length + 1) + age


def word_lines(message: Message, width: int, unfolded: bool, found: re.Pattern[str] | None) -> tuple[Content, ...]:
    room = max(10, min(width, TEXT_CELLS) - len(BAR))
    given = "\n".join(message.content.split("\n", UNFOLDED_LINES)[:UNFOLDED_LINES])
    given = given if unfolded else given[:FOLDED_CHARACTERS]
    words = agent_block(given)
    if found is not None:
        words = words.highlight_regex(found, style=FOUND)
    lines = words.wrap(room)
    bar = system_text(BAR, "$foreground-muted")
    shown = lines if unfolded else lines[:FOLDED_LINES]
    quoted = [bar + line for line in shown]
    if not unfolded and (len(lines) > FOLDED_LINES or len(given) < len(message.content)):
        quoted.append(system_text(f"… folded: {len(message.content):,} characters, o unfolds", "$text-accent"))
    elif len(given) < len(message.content):
        more = len(message.content) - len(given)
        quoted.append(system_text(f"… {more:,} characters more (agent-console messages get)", "$text-warning"))
    return (*quoted, system_text(""))


def is_foldable(message: Message, width: int) -> bool:
    if len(message.content) > FOLDED_CHARACTERS:
        return True
    return len(agent_block(message.content).wrap(max(10, min(width, TEXT_CELLS) - len(BAR)))) > FOLDED_LINES


def gap_line(gap: Gap) -> Content:
    seqs = f"#{gap.after + 1}" if gap.at_most == 1 else f"#{gap.after + 1} to #{gap.before - 1}"
    words = "message" if gap.at_most == 1 else "messages"
    return system_text(f"⋯ up to {gap.at_most:,} {words} not shown ({seqs}), Enter loads ⋯", "$text-warning")


@dataclass
class WordsLaidOut:
    """Lines by seq, for as long as nothing about how they are laid out has changed."""

    found: re.Pattern[str] | None = None
    _known: dict[tuple[int, int, bool], tuple[Content, ...]] = field(default_factory=dict)

    def lines(self, message: Message, width: int, unfolded: bool) -> tuple[Content, ...]:
        key = (message.seq, width, unfolded)
        if key not in self._known:
            self._known[key] = word_lines(message, width, unfolded, self.found)
        return self._known[key]

    def keep_only(self, held: Held) -> None:
        """What is let go takes its lines along; those of another width are of no use any more."""
        seqs = {message.seq for message in held.messages}
        self._known = {key: lines for key, lines in self._known.items() if key[0] in seqs}

    def look_for(self, found: re.Pattern[str] | None) -> None:
        self.found = found
        self._known.clear()


@dataclass(frozen=True)
class ConversationSource:
    items: tuple[Item, ...]
    names: Mapping[AgentId, str]
    unfolded: frozenset[int]
    now: datetime
    words: WordsLaidOut
    places: Mapping[str, int]

    def __len__(self) -> int:
        return len(self.items)

    def key_at(self, index: int) -> str:
        return key_of(self.items[index])

    def index_of(self, key: str) -> int | None:
        return self.places.get(key)

    def can_hold_cursor(self, index: int) -> bool:
        return not isinstance(self.items[index], Beginning)

    def height_at(self, index: int, width: int) -> int:
        item = self.items[index]
        if isinstance(item, Message):
            return 1 + len(self.words.lines(item, width, item.seq in self.unfolded))
        return len(self.lines_at(index, width))

    def lines_at(self, index: int, width: int) -> tuple[Content, ...]:
        match self.items[index]:
            case Message() as message:
                words = self.words.lines(message, width, message.seq in self.unfolded)
                return (head_line(message, self.names, self.now, width), *words)
            case Gap() as gap:
                return (gap_line(gap).truncate(width, ellipsis=True), system_text(""))
            case Beginning(is_known=True):
                return (system_text("The thread begins here.", "$foreground-muted"), system_text(""))
            case Beginning():
                return (system_text("… older messages are being loaded …", "$foreground-muted"), system_text(""))
