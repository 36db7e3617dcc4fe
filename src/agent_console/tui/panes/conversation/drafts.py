"""What somebody was about to say, thread by thread: kept until it is said, whatever becomes of screens."""

from dataclasses import dataclass, field, replace
from uuid import uuid4
from weakref import WeakKeyDictionary

from agent_console.domain.ids import AgentId, ThreadId
from agent_console.domain.messages import NewMessage
from agent_console.tui.link import Link


@dataclass(frozen=True)
class Draft:
    text: str = ""
    to: tuple[AgentId, ...] = ()
    broadcast: bool = False

    @property
    def says_something(self) -> bool:
        return bool(self.text.strip())


@dataclass
class Drafts:
    """A draft keeps the key under which it was sent until its words change: sent again, it is not said twice."""

    _drafts: dict[ThreadId, Draft] = field(default_factory=dict)
    _sent_as: dict[ThreadId, tuple[Draft, str]] = field(default_factory=dict)

    def of(self, thread_id: ThreadId) -> Draft:
        return self._drafts.get(thread_id, Draft())

    def keep(self, thread_id: ThreadId, draft: Draft) -> None:
        self._drafts[thread_id] = draft

    def message_of(self, thread_id: ThreadId) -> NewMessage:
        """The draft as it is sent now; what can't be sent is refused by the request's own rules."""
        draft = self.of(thread_id)
        known, key = self._sent_as.get(thread_id, (None, ""))
        if known != draft:
            key = f"console-{uuid4()}"
            self._sent_as[thread_id] = (draft, key)
        return NewMessage(
            thread_id=thread_id, content=draft.text, to=draft.to, broadcast=draft.broadcast, idempotency_key=key
        )

    def was_said(self, said: NewMessage) -> None:
        """Only what was said is let go: words typed meanwhile stay. Whom it went to stays chosen."""
        draft = self.of(said.thread_id)
        if (draft.text, draft.to, draft.broadcast) == (said.content, said.to, said.broadcast):
            self._drafts[said.thread_id] = replace(draft, text="")
        self._sent_as.pop(said.thread_id, None)


_OF_LINK: WeakKeyDictionary[Link, Drafts] = WeakKeyDictionary()


def drafts_of(link: Link) -> Drafts:
    """They live as long as somebody holds the link."""
    return _OF_LINK.setdefault(link, Drafts())


def keep_drafts(earlier: Link, later: Link) -> None:
    """Another link to the same place: what was about to be said there still is."""
    _OF_LINK[later] = drafts_of(earlier)
