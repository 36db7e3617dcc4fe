"""Messages: what is said in a thread, and the pages it is read by.

`seq` orders a thread. A page goes back from `before_seq`, or forward from `after_seq`; whoever follows a thread
asks again after the last `seq` that was seen and misses nothing, because a message gets its `seq` while its
thread is locked. The spellings `beforeSeq`, `afterSeq`, `nextBeforeSeq` and `nextAfterSeq` are those of HTTP.
"""

import json
from typing import Annotated, ClassVar, Generic, TypeVar

from pydantic import AfterValidator, AliasChoices, AwareDatetime, BaseModel, ConfigDict, Field, JsonValue

from agent_console.domain.ids import AgentId, MessageId, RunId, ThreadId, UserId
from agent_console.domain.kinds import ActorType
from agent_console.domain.records import (
    LARGEST_NUMBER,
    Instant,
    JsonObject,
    NoKeys,
    NotBlank,
    Page,
    PageRequest,
    Record,
    Request,
    Storable,
)
from agent_console.domain.redact import REDACTED, without_keys

CONTENT_BYTES = 65_536
RECIPIENTS = 50
POSTS_PER_MINUTE = 120

Seq = Annotated[int, Field(ge=0, le=LARGEST_NUMBER)]


def _fits(content: str) -> str:
    if len(content.encode("utf-8", "surrogatepass")) > CONTENT_BYTES:
        raise ValueError(f"must be at most {CONTENT_BYTES} bytes of UTF-8, with {REDACTED} for every key in it")
    return content


def _object_fits(payload: dict[str, JsonValue]) -> dict[str, JsonValue]:
    if len(json.dumps(payload)) > CONTENT_BYTES:
        raise ValueError(f"must be at most {CONTENT_BYTES} characters of JSON")
    return payload


# What was said is kept without the keys in it: a thread is read by many, and for long.
Content = Annotated[
    str,
    Field(min_length=1, max_length=CONTENT_BYTES),
    NotBlank,
    Storable,
    AfterValidator(without_keys),
    # What stands in the place of a key may be longer than it was.
    AfterValidator(_fits),
]
Payload = Annotated[JsonObject, NoKeys, AfterValidator(_object_fits)]


class Message(Record):
    columns: ClassVar[tuple[str, ...]] = ("seq", "created_at", "author", "content")

    id: MessageId
    seq: int
    thread_id: ThreadId
    author_type: ActorType
    author_user_id: UserId | None
    author_agent_id: AgentId | None
    author: str = Field(description="The name of who wrote it; an agent's stays when the agent is deleted.")
    content: str
    payload: dict[str, JsonValue]
    run_id: RunId | None = Field(description="The run that it came out of.")
    to_agent_ids: tuple[AgentId, ...] = Field((), description="The agents that it asked to act.")
    broadcast: bool = Field(False, description="It asked every agent of the thread.")
    intervention: bool = Field(False, description="A person wrote it while an agent was at work in the thread.")
    created_at: Instant


class PostedMessage(Message):
    """A message, and what came of it."""

    runs: tuple[RunId, ...] = Field((), description="The runs that it started, one for each agent it went to.")
    warnings: tuple[str, ...] = Field((), description="Told once, when it is posted: who will not act on it now.")


class NewMessage(Request):
    """Something to say: to those who read the thread, or to agents that shall act on it."""

    thread_id: ThreadId
    content: Content = Field(description="The words; plain text.")
    payload: Payload = Field({}, description="Structured content, a JSON object.")
    to: tuple[AgentId, ...] = Field(
        (), max_length=RECIPIENTS, description="An agent that shall act on it; repeat for several."
    )
    broadcast: bool = Field(False, description="Every agent that takes part in the thread shall act on it.")
    run_id: RunId | None = Field(None, description="As an agent: the run of yours that it came out of.")
    idempotency_key: str | None = Field(
        None, min_length=1, max_length=255, description="The same key again gives the same message."
    )


class MessageAsked(Request):
    thread_id: ThreadId
    message_id: MessageId


class MessageQuery(PageRequest):
    """The messages of a thread, newest first; after a `seq`, oldest first. Only one position may be given."""

    thread_id: ThreadId
    before_seq: Seq | None = Field(
        None,
        validation_alias=AliasChoices("before_seq", "beforeSeq"),
        description="Only what came before this seq (over HTTP also beforeSeq).",
    )
    after_seq: Seq | None = Field(
        None,
        validation_alias=AliasChoices("after_seq", "afterSeq"),
        description="Only what came after this seq, oldest first (over HTTP also afterSeq).",
    )
    around: Seq | None = Field(None, description="The page with this seq in its middle.")
    at_time: AwareDatetime | None = Field(
        None, description="The page around the first message at or after this time (ISO 8601)."
    )
    run_id: RunId | None = Field(None, description="Only what came out of this run.")


Item = TypeVar("Item", bound=BaseModel)


class SeqPage(Page[Item], Generic[Item]):
    """A page of a thread. `next` goes on in the direction of the page."""

    model_config = ConfigDict(serialize_by_alias=True)

    next_before_seq: int | None = Field(
        None,
        validation_alias=AliasChoices("nextBeforeSeq", "next_before_seq"),
        serialization_alias="nextBeforeSeq",
        description="The smallest seq of the page; null when nothing is older.",
    )
    next_after_seq: int | None = Field(
        None,
        validation_alias=AliasChoices("nextAfterSeq", "next_after_seq"),
        serialization_alias="nextAfterSeq",
        description="Ask with after_seq=this for what came later; null while nothing was said.",
    )


class MessageSearch(PageRequest):
    """The messages of a thread that hold these words, newest first."""

    thread_id: ThreadId
    words: Annotated[str, NotBlank] = Field(
        min_length=1,
        max_length=200,
        description='What to look for: all of the words; "in quotes" as a phrase, or, -without.',
    )
    before_seq: Seq | None = Field(
        None,
        validation_alias=AliasChoices("before_seq", "beforeSeq"),
        description="Only what came before this seq (over HTTP also beforeSeq).",
    )


class MessageHit(Record):
    """A message that was found. The marks are places in the snippet, never characters in it."""

    columns: ClassVar[tuple[str, ...]] = ("seq", "created_at", "author", "snippet")

    id: MessageId
    seq: int
    author_type: ActorType
    author: str
    created_at: Instant
    snippet: str
    marks: tuple[tuple[int, int], ...] = Field(description="Where the words are in the snippet: start and end.")
