"""Threads, and what each who takes part in one may do there."""

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field

from agent_console.domain.filters import FILTER_LENGTH, Filterable, Known, Qualifier
from agent_console.domain.ids import AgentId, ParticipantId, ThreadId, UserId
from agent_console.domain.kinds import ParticipantType, Visibility
from agent_console.domain.records import Instant, NotBlank, PageRequest, Record, Request
from agent_console.domain.redact import REDACTED, without_keys

TITLE_LENGTH = 500


def _fits(title: str) -> str:
    if len(title) > TITLE_LENGTH:
        raise ValueError(f"must be at most {TITLE_LENGTH} characters, with {REDACTED} for every key in it")
    return title


Title = Annotated[
    str,
    Field(min_length=1, max_length=TITLE_LENGTH),
    NotBlank,
    AfterValidator(without_keys),
    AfterValidator(_fits),
]


class Thread(Record):
    columns: ClassVar[tuple[str, ...]] = ("id", "title", "visibility", "created_by", "updated_at", "archived_at")

    id: ThreadId
    title: str | None
    visibility: Visibility
    created_by_user_id: UserId
    created_by: str
    updated_by_user_id: UserId | None
    updated_by: str | None
    archived_at: Instant | None
    created_at: Instant
    updated_at: Instant = Field(description="Moves with every message and run.")
    can_write: bool = Field(description="Whether you may write there now.")
    can_share: bool = Field(description="Whether you may decide who takes part.")


class NewThread(Request):
    title: Title | None = Field(None, description="What it is about.")
    visibility: Visibility = Field(
        Visibility.PRIVATE, description="A shared one may be read by everybody of the team."
    )


class WhichThreads(StrEnum):
    ALL = "all"
    MINE = "mine"
    SHARED = "shared"


class Archived(StrEnum):
    NO = "no"
    YES = "yes"
    ONLY = "only"


class ThreadStatus(StrEnum):
    OPEN = "open"
    ARCHIVED = "archived"


class WaitsFor(StrEnum):
    """What keeps a thread from being done."""

    APPROVAL = "approval"
    RUN = "run"


THREAD_FILTERS = Filterable(
    (
        Qualifier("status", "open or archived", listed=tuple(ThreadStatus), also="state"),
        Qualifier("visibility", "who may read it", listed=tuple(Visibility)),
        Qualifier("agent", "an agent that takes part, by name or id", known=Known.AGENTS),
        Qualifier("waiting", "what it waits for, approval or run", listed=tuple(WaitsFor)),
        Qualifier("age", "since it was begun, such as >1h or <2d", is_age=True),
    ),
    words="its title",
)


class ThreadQuery(PageRequest):
    """The threads you may read, newest first. With a filter a page may hold few, even none, and still go on."""

    filters: ClassVar[Filterable] = THREAD_FILTERS

    which: WhichThreads = Field(
        WhichThreads.ALL, description="Those you take part in, those shared with the team, or all you may read."
    )
    archived: Archived = Field(
        Archived.NO, description="Whether archived ones are listed too; a filter with status: lists them anyway."
    )
    filter: Annotated[str, THREAD_FILTERS.checked] | None = Field(
        None, max_length=FILTER_LENGTH, description=THREAD_FILTERS.help, examples=["agent:atlas waiting:approval"]
    )


class ThreadAsked(Request):
    thread_id: ThreadId


class ThreadChange(Request):
    """What is left out stays as it is."""

    thread_id: ThreadId
    title: Title | None = Field(None, description="What it is about.")
    visibility: Visibility | None = Field(None, description="Who may read it without taking part.")


class Participant(Record):
    columns: ClassVar[tuple[str, ...]] = ("id", "participant_type", "name", "can_read", "can_write", "can_share")

    id: ParticipantId
    thread_id: ThreadId
    participant_type: ParticipantType
    user_id: UserId | None
    agent_id: AgentId | None
    name: str
    can_read: bool
    can_write: bool
    can_share: bool
    created_by_user_id: UserId | None
    created_by: str | None = Field(description="Who let them in.")
    created_at: Instant


class ParticipantQuery(PageRequest):
    """Who takes part in a thread, in the order they came."""

    thread_id: ThreadId


class NewParticipant(Request):
    """Either a person or an agent."""

    thread_id: ThreadId
    user_id: UserId | None = Field(None, description="The person.")
    agent_id: AgentId | None = Field(None, description="The agent.")
    can_read: bool = Field(True, description="May read the thread.")
    can_write: bool = Field(False, description="May write to it; needs the right to read.")
    can_share: bool = Field(False, description="May decide who takes part; needs the right to read.")


class ParticipantRights(Request):
    """What is left out stays as it is."""

    thread_id: ThreadId
    participant_id: ParticipantId
    can_read: bool | None = Field(None, description="May read the thread.")
    can_write: bool | None = Field(None, description="May write to it; needs the right to read.")
    can_share: bool | None = Field(None, description="May decide who takes part; needs the right to read.")


class ParticipantAsked(Request):
    thread_id: ThreadId
    participant_id: ParticipantId
