"""Reading a thread page by page, both ways, and following what is said in it."""

from bisect import bisect_left
from dataclasses import dataclass

from agent_console.domain.ids import RunId, ThreadId
from agent_console.domain.messages import Message, MessageQuery, MessageSearch, SeqPage
from agent_console.domain.records import PAGE_LIMIT_MAX
from agent_console.repository.operations.messages import MESSAGES_LIST, MESSAGES_SEARCH
from agent_console.tui.link import Link
from agent_console.tui.panes.conversation.held import Gap, Held, Stretch, after, before, newest
from agent_console.tui.panes.conversation.places import Place
from agent_console.tui.panes.conversation.search import Hits
from agent_console.tui.panes.typed import request_of

FIRST_PAGE = 50
PAGE = 100
HITS = 50


@dataclass(frozen=True)
class Landing:
    """The message that somebody wanted, or the nearest to it; then `remark` says so."""

    seq: int | None
    remark: str = ""


class Reading:
    """Whichever page comes first is put in where it belongs; every page is asked for on its own."""

    def __init__(self, link: Link, thread_id: ThreadId) -> None:
        self._link = link
        self._thread_id = thread_id
        self.held = Held()

    async def _page(self, query: MessageQuery) -> SeqPage[Message]:
        return await self._link.call(MESSAGES_LIST, query)

    def _take(self, stretch: Stretch) -> None:
        self.held = self.held.with_stretch(stretch)

    async def read_on(self) -> None:
        """What was said after the newest that is known. Who is more than a page behind gets the newest page and a
        gap before it: nobody is led through all that was said while they were away."""
        known = self.held.newest_seq
        if known is not None:
            page = await self._page(MessageQuery(thread_id=self._thread_id, after_seq=known, limit=PAGE_LIMIT_MAX))
            self._take(after(known, page))
            if page.next is None:
                return
        self._take(newest(await self._page(MessageQuery(thread_id=self._thread_id, limit=FIRST_PAGE))))

    async def read_back(self) -> None:
        oldest = self.held.oldest_seq
        if oldest is not None:
            page = await self._page(MessageQuery(thread_id=self._thread_id, before_seq=oldest, limit=PAGE))
            self._take(before(oldest, page))

    async def read_into(self, gap: Gap, *, upwards: bool) -> None:
        """A page of what a gap leaves out, next to where one comes from."""
        query = MessageQuery(thread_id=self._thread_id, limit=PAGE)
        if upwards:
            page = await self._page(query.model_copy(update={"before_seq": gap.before}))
            self._take(before(gap.before, page))
        else:
            page = await self._page(query.model_copy(update={"after_seq": gap.after}))
            self._take(after(gap.after, page))

    async def beginning(self) -> Landing:
        if self.held.oldest_seq is not None:
            page = await self._page(MessageQuery(thread_id=self._thread_id, after_seq=0, limit=PAGE))
            self._take(after(0, page))
        first = next(iter(self.held.messages), None)
        return Landing(None if first is None else first.seq)

    async def place(self, place: Place) -> Landing:
        if place.run_id is not None:
            return await self._run(place.run_id)
        if place.time is not None:
            asked = {"thread_id": self._thread_id, "at_time": place.time, "limit": PAGE}
            page = await self._page(request_of(MessageQuery, asked))
            self._take(newest(page))
            later = [message for message in page.items if message.created_at >= place.time]
            if later:
                return Landing(later[-1].seq)
            last = page.items[0].seq if page.items else None
            return Landing(last, "Nothing was said after that time; this is the newest message.")
        return await self._seq(place.seq or 0)

    async def _seq(self, seq: int) -> Landing:
        if not self.held.covers(seq):
            self._take(newest(await self._page(MessageQuery(thread_id=self._thread_id, around=seq, limit=PAGE))))
        messages = self.held.messages
        if not messages:
            return Landing(None)
        index = bisect_left(messages, seq, key=lambda message: message.seq)
        found = messages[min(index, len(messages) - 1)].seq
        return Landing(found, "" if found == seq else f"#{seq} is not of this thread; the nearest is #{found}.")

    async def _run(self, run_id: RunId) -> Landing:
        query = MessageQuery(thread_id=self._thread_id, run_id=run_id, after_seq=0, limit=1)
        page = await self._page(query)
        if not page.items:
            return Landing(None, "Nothing in this thread came out of that run.")
        return await self._seq(page.items[0].seq)

    def search_for(self, words: str) -> Hits:
        """Nothing is found so far; what can't be looked for at all raises a ConsoleError."""
        return Hits(self._search(words).words)

    def _search(self, words: str) -> MessageSearch:
        return request_of(MessageSearch, {"thread_id": self._thread_id, "words": words, "limit": HITS})

    async def found(self, hits: Hits) -> Hits:
        """The hits with another page of them."""
        query = self._search(hits.words)
        if hits.seqs:
            query = query.model_copy(update={"before_seq": hits.seqs[-1]})
        return hits.with_page(await self._link.call(MESSAGES_SEARCH, query))
