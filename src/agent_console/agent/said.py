"""What a program says in a line of output: plain words, or one of a few JSON forms.

{"agent_console": "progress", "percentage": 40, "message": "reading"}
{"agent_console": "event", "level": "warn", "message": "disk is nearly full", "payload": {"free": 3}}
{"agent_console": "message", "text": "Done; the report is attached."}
{"agent_console": "result", "summary": "7 files", "result": {"files": 7}}
"""

import json
from dataclasses import dataclass
from typing import Annotated, Literal, NoReturn, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter, ValidationError

from agent_console.agent.storable import NotJson, storable
from agent_console.domain.kinds import EventLevel
from agent_console.domain.problems import first_problem

MARK = '"agent_console"'


class _Form(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ProgressSaid(_Form):
    """How far it is."""

    agent_console: Literal["progress"]
    percentage: float | None = Field(None, allow_inf_nan=False)
    message: str | None = None
    stage: str | None = None
    files_scanned: int | None = Field(None, ge=0)
    total_files: int | None = Field(None, ge=0)
    current_file: str | None = None


class EventSaid(_Form):
    """What happened, with a level and details of its own."""

    agent_console: Literal["event"]
    level: EventLevel = EventLevel.INFO
    message: str
    payload: dict[str, JsonValue] | None = None


class MessageSaid(_Form):
    """Something for the thread that the job belongs to."""

    agent_console: Literal["message"]
    text: str = Field(min_length=1)


class ResultSaid(_Form):
    """What came of it; the last one counts, if the program ends well."""

    agent_console: Literal["result"]
    summary: str | None = None
    result: dict[str, JsonValue] | None = None


@dataclass(frozen=True)
class Words:
    """A line that is nothing but text."""

    text: str


@dataclass(frozen=True)
class NotUnderstood:
    """A line that wanted to be one of the forms."""

    text: str
    problem: str


Form: TypeAlias = ProgressSaid | EventSaid | MessageSaid | ResultSaid
Said: TypeAlias = Form | Words | NotUnderstood

_FORMS: TypeAdapter[Form] = TypeAdapter(Annotated[Form, Field(discriminator="agent_console")])


def said_in(line: str) -> Said:
    if not line.lstrip().startswith("{") or MARK not in line:
        return Words(line)
    try:
        value: JsonValue = json.loads(line, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return Words(line)
    if not isinstance(value, dict) or "agent_console" not in value:
        return Words(line)
    try:
        return _FORMS.validate_python(storable(value), strict=False)
    except NotJson as error:
        return NotUnderstood(line, f"it {error}")
    except ValidationError as error:
        # The first step names the form.
        return NotUnderstood(line, first_problem(error, below=1))


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")
