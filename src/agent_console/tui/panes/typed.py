"""What somebody typed becomes a question or a time, or is refused with a sentence: never is it a fault of ours."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from pydantic import ValidationError

from agent_console.domain.errors import Invalid
from agent_console.domain.problems import first_problem
from agent_console.domain.records import Request

Wanted = TypeVar("Wanted", bound=Request)

_SPAN = re.compile(r"(?P<count>\d{1,6})\s*(?P<unit>[smhd])(?:\s+ago)?")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def request_of(model: type[Wanted], said: Mapping[str, object], hint: str = "") -> Wanted:
    """Raises a ConsoleError with what the model says is wrong."""
    try:
        return model.model_validate(said)
    except ValidationError as error:
        raise Invalid(f"{first_problem(error)}.", hint=hint) from error


def time_ago(words: str, now: datetime) -> datetime | None:
    """`2h` or `40 m ago`; None when that is no span of time."""
    if (found := _SPAN.fullmatch(words)) is None:
        return None
    try:
        return now - timedelta(seconds=int(found["count"]) * _SECONDS[found["unit"]])
    except OverflowError as error:
        raise Invalid(f"{words} is before there were years.", hint="Give a shorter one, such as 2h.") from error


def time_of(words: str) -> datetime | None:
    """Without a zone it is UTC, as everything that is shown; None when that is no time, or in no year of UTC."""
    try:
        given = datetime.fromisoformat(words)
        return given.astimezone(UTC) if given.tzinfo is not None else given.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None
