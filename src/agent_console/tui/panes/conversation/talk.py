"""The messages of a thread on the screen: pages as they are needed both ways, live at the end."""

from collections.abc import Awaitable
from typing import ClassVar

from textual import on, work
from textual.binding import Binding, BindingType
from textual.message import Message as Told

from agent_console.domain.errors import ConsoleError, NotFound
from agent_console.domain.ids import AgentId, ThreadId
from agent_console.domain.messages import Message
from agent_console.tui.agent_text import system_text
from agent_console.tui.link import GONE
from agent_console.tui.panes.conversation.held import Gap
from agent_console.tui.panes.conversation.lines import (
    ConversationSource,
    Item,
    WordsLaidOut,
    is_foldable,
    items_of,
    key_of,
)
from agent_console.tui.panes.conversation.places import Place
from agent_console.tui.panes.conversation.reading import Landing, Reading
from agent_console.tui.panes.conversation.search import Hits
from agent_console.tui.panes.pane import is_waiting
from agent_console.tui.panes.surroundings import Surroundings
from agent_console.tui.wanted import Refused
from agent_console.tui.widgets.tall_list import GUTTER, TallList

READING_ON, READING_BACK, GOING = "reading on", "reading back", "going"
NEAR_TOP = 20
"""So many messages before the first that is held, or a few screens of them, older ones are asked for."""
NOTHING_SAID = "Nothing was said here yet."


class Talk(TallList):
    """At its end it follows what is said; anywhere else nothing moves, and what came is counted."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("o", "fold", "Fold or unfold", id="talk.fold", show=False),
        Binding("n", "hit(1)", "Next hit, older", id="talk.older_hit", show=False),
        Binding("N", "hit(-1)", "Next hit, newer", id="talk.newer_hit", show=False),
        Binding("home,g", "first", "Where it begins", id="talk.first", show=False),
        Binding("end,G", "newest", "Newest, and follow", id="talk.newest", show=False),
    ]

    class Changed(Told):
        """Where one stands in the thread, or what is to be told of it, is not what it was."""

        def can_replace(self, message: Told) -> bool:
            return isinstance(message, Talk.Changed)

    class Unreadable(Told):
        """The thread is gone, or may not be read any more."""

    def __init__(self, around: Surroundings, thread_id: ThreadId, first: Place | None = None) -> None:
        super().__init__(empty=system_text("Loading …"), id="talk")
        self._around = around
        self.reading = Reading(around.link, thread_id)
        self._words = WordsLaidOut()
        self._items: tuple[Item, ...] = ()
        self._names: dict[AgentId, str] = {}
        self._unfolded: frozenset[int] = frozenset()
        self._first = first
        self._unheard = True
        self._was_refused = False
        self.has_read = False
        self.hits: Hits | None = None
        self.remark = ""
        self.seen = 0

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action != "hit" or self.hits is not None

    def item(self, key: str) -> Item | None:
        index = self.source.index_of(key)
        return None if index is None else self._items[index]

    @property
    def message(self) -> Message | None:
        """What the cursor is on, unless that is a gap."""
        item = None if self.cursor_key is None else self.item(self.cursor_key)
        return item if isinstance(item, Message) else None

    def know(self, names: dict[AgentId, str]) -> None:
        self._names = names
        self.show_items()

    def tell(self, remark: str) -> None:
        self.remark = remark
        self.post_message(self.Changed())

    # Freshness

    def hear(self) -> None:
        self._unheard = True
        self._was_refused = False

    def step(self) -> None:
        if self._unheard and not self._was_refused and not is_waiting(self, READING_ON):
            self._unheard = False
            self._read_on()
        self._read_back_in_time()

    def set_stale(self, stale: bool) -> None:
        self.stale = stale
        self.hear()
        if stale:
            # Nobody waits for answers that will not come; everything is asked for again after the return.
            self.workers.cancel_node(self)

    @work(group=READING_ON)
    async def _read_on(self) -> None:
        if not await self._done(self.reading.read_on()):
            self._unheard = True
            return
        if not self.has_read:
            self.has_read = True
            self.say_when_empty(system_text(NOTHING_SAID))
        self._take(follow=self.is_at_end)
        first, self._first = self._first, None
        if first is not None:
            self.go_to_place(first)

    @work(group=READING_BACK)
    async def _read_back(self) -> None:
        if await self._done(self.reading.read_back()):
            self._take()

    def _read_back_in_time(self) -> None:
        is_near = self.top_index <= max(NEAR_TOP, self.size.height)
        may_ask = self._around.up and not self._was_refused and not is_waiting(self, READING_BACK)
        if is_near and may_ask and self.reading.held.oldest_seq is not None:
            self._read_back()

    async def _done(self, reading: Awaitable[object]) -> bool:
        """False when it could not be read; a refusal is told here, a lost connection elsewhere.

        What was refused is not asked for again until something has changed, or everything is looked at again.
        """
        try:
            await reading
        except NotFound:
            self.post_message(self.Unreadable())
            return False
        except ConsoleError as error:
            if not isinstance(error, GONE):
                self._was_refused = True
                self.post_message(Refused(error))
            return False
        return True

    # What is shown

    def _take(self, *, follow: bool = False) -> None:
        """Show what came. Only who follows is moved."""
        message, held = self.message, self.reading.held
        at = held.newest_seq or 0 if follow or message is None else message.seq
        self.reading.held = held = held.trimmed(at)
        self._words.keep_only(held)
        self._items = items_of(held)
        self.show_items()
        if follow:
            self.go_to_end()
        self._count()

    def show_items(self) -> None:
        places = {key_of(item): place for place, item in enumerate(self._items)}
        now = self._around.clock()
        self.show(ConversationSource(self._items, self._names, self._unfolded, now, self._words, places))

    def _count(self) -> None:
        if self.is_at_end:
            self.seen = self.reading.held.newest_seq or 0
        self.post_message(self.Changed())

    @on(TallList.Moved)
    def _moved(self) -> None:
        self._count()
        self._read_back_in_time()

    def action_fold(self) -> None:
        message = self.message
        if message is not None and is_foldable(message, self.size.width - GUTTER):
            self._unfolded ^= {message.seq}
            self.show_items()

    # Going elsewhere

    def read_into(self, gap: Gap) -> None:
        if not is_waiting(self, GOING):
            self._read_into(gap, upwards=self.came_up)

    @work(group=GOING)
    async def _read_into(self, gap: Gap, *, upwards: bool) -> None:
        """What was on the screen stays there; the cursor goes to the first message that came beside it."""
        if gap not in self._items:
            # Filled since the key was pressed.
            return
        beside = key_of(self._items[self._items.index(gap) + (1 if upwards else -1)])
        line = self.line_of(beside)
        if not await self._done(self.reading.read_into(gap, upwards=upwards)):
            return
        self._take()
        index = self.source.index_of(beside)
        if index is None or line is None:
            return
        self.go_to(beside, line=line)
        place = index - 1 if upwards else index + 1
        if 0 <= place < len(self._items):
            self.step_to(key_of(self._items[place]))

    def action_first(self) -> None:
        if not is_waiting(self, GOING):
            self._go(None)

    def action_newest(self) -> None:
        self.remark = ""
        self.go_to_end()
        self._count()

    def go_to_place(self, place: Place) -> None:
        if not is_waiting(self, GOING):
            self._go(place)

    @work(group=GOING)
    async def _go(self, place: Place | None) -> None:
        """Without a place, to where the thread begins."""
        try:
            landing = await (self.reading.beginning() if place is None else self.reading.place(place))
        except ConsoleError as error:
            self.tell(str(error))
            return
        self._land(landing)

    def _land(self, landing: Landing) -> None:
        """What lies far from where one goes may be let go, so the cursor moves before anything is."""
        self._items = items_of(self.reading.held)
        self.show_items()
        if landing.seq is not None:
            self.go_to(f"#{landing.seq}")
        self._take()
        self.tell(landing.remark)

    def look_for(self, hits: Hits | None) -> None:
        self.hits = hits
        self._words.look_for(None if hits is None else hits.pattern)
        self.show_items()
        self.tell("")
        if hits is not None:
            self.action_hit(1)

    def action_hit(self, by: int) -> None:
        if self.hits is not None and not is_waiting(self, GOING):
            self._go_to_hit(self.hits, by)

    @work(group=GOING)
    async def _go_to_hit(self, hits: Hits, by: int) -> None:
        try:
            if by > 0 and hits.needs_more:
                hits = await self.reading.found(hits)
            hits = hits.moved(by)
            landing = Landing(None) if hits.seq is None else await self.reading.place(Place(seq=hits.seq))
        except ConsoleError as error:
            self.tell(str(error))
            return
        self.hits = hits
        self._land(landing)
