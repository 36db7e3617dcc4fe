"""What every model shares: frozen, strict in what is asked, generous in what is answered, times in UTC."""

import sys
from datetime import MAXYEAR, MINYEAR, UTC, datetime
from typing import Annotated, Any, ClassVar, Generic, Self, TypeVar

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    PlainSerializer,
    WithJsonSchema,
    field_validator,
)

from agent_console.domain.redact import holds_key


def shown_time(moment: datetime) -> str:
    """ISO 8601 in UTC with milliseconds."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


Instant = Annotated[
    AwareDatetime,
    PlainSerializer(shown_time, return_type=str, when_used="json"),
    # A serializer's text would be any text to a generated client.
    WithJsonSchema({"type": "string", "format": "date-time"}, mode="serialization"),
]


def _not_blank(value: str) -> str:
    if not value.strip():
        raise ValueError("must not be blank")
    return value


NotBlank = AfterValidator(_not_blank)

LARGEST_NUMBER = 2**63 - 1
"""How far PostgreSQL counts."""
LARGEST_COUNT = 2**31 - 1
"""How far it counts attempts and versions."""
FIRST_YEAR, LAST_YEAR = MINYEAR + 1, MAXYEAR - 1

Given = TypeVar("Given")


def _storable(value: Given) -> Given:
    if (problem := _unstorable(value)) is not None:
        raise ValueError(problem)
    return value


def _unstorable(value: object) -> str | None:
    match value:
        case str() if "\0" in value:
            return "must not contain NUL characters"
        case str() if not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
            return "must be whole Unicode characters"
        # NaN is neither smaller nor larger than anything.
        case int() | float() if not abs(value) <= sys.float_info.max:
            return "must hold finite numbers, none beyond 1.8e308"
        # In another zone the first and the last year may be one that no datetime can tell.
        case datetime() if not FIRST_YEAR <= value.year <= LAST_YEAR:
            return f"must lie in the years {FIRST_YEAR} to {LAST_YEAR}"
        case dict():
            found = (_unstorable(part) for pair in value.items() for part in pair)
        case list() | tuple():
            found = (_unstorable(part) for part in value)
        case _:
            return None
    return next((problem for problem in found if problem is not None), None)


# What PostgreSQL can't keep in a text or in JSON is refused where its field can still be named. Every text of a
# request is; what is made elsewhere, or looked into by another rule, says it by itself.
Storable = AfterValidator(_storable)
JsonObject = Annotated[dict[str, JsonValue], Storable]


def _no_keys(value: dict[str, JsonValue]) -> dict[str, JsonValue]:
    if holds_key(value):
        raise ValueError(
            "holds a key or token, which everyone who sees this could read; keep it in a connector's credentials"
            " or with the agent, and name it here"
        )
    return value


# A job can't do without what its payload says, so a key in it is refused and not taken out.
NoKeys = AfterValidator(_no_keys)


class Record(BaseModel):
    """An answer. Unknown fields are passed over, so that an older console can read a newer server.

    `columns` names the fields that a table of such records shows, in their order.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)
    columns: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def of_known(cls, fields: dict[str, Any]) -> Self:
        """A record of what somebody else has proved already: all its fields, as they are.

        What model_construct does for one that leaves nothing out, without asking each field for its default.
        """
        record = cls.__new__(cls)
        object.__setattr__(record, "__dict__", fields)
        object.__setattr__(record, "__pydantic_fields_set__", set(fields))
        object.__setattr__(record, "__pydantic_extra__", None)
        object.__setattr__(record, "__pydantic_private__", None)
        return record


class Request(BaseModel):
    """A question or an order. Unknown fields are refused: a misspelt filter must not mean 'everything'."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @field_validator("*")
    @classmethod
    def _can_be_kept(cls, value: Given) -> Given:
        """Objects are checked by their own type, before anybody measures them."""
        return value if isinstance(value, dict) else _storable(value)


class Nothing(Request):
    """A request that needs no words."""


Item = TypeVar("Item", bound=BaseModel)

PAGE_LIMIT = 50
PAGE_LIMIT_MAX = 200


class PageRequest(Request):
    """Asks for one keyset page: `after` is the `next` of the page before."""

    limit: int = Field(PAGE_LIMIT, ge=1, le=PAGE_LIMIT_MAX, description="How many rows at most.")
    after: str | None = Field(None, max_length=500, description="Where the page before ended.")


class Page(Record, Generic[Item]):
    items: tuple[Item, ...]
    next: str | None = Field(None, description="Ask again with after=this for more; null at the end.")
