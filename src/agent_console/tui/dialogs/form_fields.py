"""The fields of a request as a person types them: derived from its model, read back through its model."""

import json
from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from enum import Enum, IntEnum
from typing import Any

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from agent_console.domain.batches import BatchRequest
from agent_console.domain.errors import WrongId
from agent_console.domain.problems import problem_of
from agent_console.domain.records import Record, Request
from agent_console.repository.operations import AnyOperation
from agent_console.repository.operations.fields import (
    default_of,
    help_of,
    id_type,
    shown_value,
    takes_object,
    takes_several,
    value_type,
)


@dataclass(frozen=True)
class FormField:
    name: str
    label: str
    help: str
    required: bool
    default: str


def form_fields(operation: AnyOperation, record: Record | None = None) -> tuple[FormField, ...]:
    """What has to be typed; required ones first. What a required one is now, is what stands there at first."""
    left = [
        (name, info) for name, info in operation.request.model_fields.items() if name not in operation.path_fields
    ]
    fields = (_field(name, info, _value_now(record, name)) for name, info in left)
    return tuple(sorted(fields, key=lambda field: not field.required))


def batch_fields(
    operation: AnyOperation, *, without: Container[str], given: Mapping[str, str]
) -> tuple[FormField, ...]:
    """What has to be typed for work on many things: how far it is done at a time is not asked of people.

    `given` is what stands there at first, because the list is filtered by it.
    """
    left = (field for field in form_fields(operation) if field.name not in without)
    asked = (field for field in left if field.name not in BatchRequest.model_fields)
    return tuple(replace(field, default=given.get(field.name, field.default)) for field in asked)


def typed_values(request: Request) -> dict[str, str]:
    """What is said in a request, as it would be typed."""
    said = {name: value for name, value in request if value not in (None, (), "")}
    return {name: _typed(value) for name, value in said.items()}


def _typed(value: object) -> str:
    if isinstance(value, tuple | list | frozenset):
        return ", ".join(shown_value(item) for item in value)
    return shown_value(value)


def _value_now(record: Record | None, name: str) -> str:
    """Numbers and choices only: words of others are never put into a field as if somebody here had typed them."""
    value = getattr(record, name, None)
    return shown_value(value) if isinstance(value, int | float | Enum) else ""


def _field(name: str, info: FieldInfo, value_now: str) -> FormField:
    words = [help_of(info)]
    if (kind := id_type(info)) is not None:
        words.append(f"({kind.prefix}_…)")
    if value_type(info.annotation) is bool:
        words.append("yes or no.")
    elif takes_object(info.annotation) and "JSON" not in words[0]:
        words.append("A JSON object.")
    elif takes_several(info.annotation):
        words.append("Several with commas between; [] is none.")
    label = name.removesuffix("_id").replace("_", " ")
    first = value_now if info.is_required() else default_of(info)
    return FormField(name, label, " ".join(words).strip(), info.is_required(), first)


def request_from(
    operation: AnyOperation, subject: Mapping[str, str | tuple[str, ...]], typed: dict[str, str]
) -> tuple[Request | None, dict[str, str]]:
    """The request, or what is wrong with which field. Nothing typed is ever thrown away."""
    values: dict[str, object] = dict(subject)
    problems: dict[str, str] = {}
    for name, text in typed.items():
        if not text.strip():
            continue
        try:
            values[name] = _value(operation.request.model_fields[name].annotation, text)
        except ValueError as error:
            problems[name] = str(error)
    if problems:
        return None, problems
    try:
        request: Request = operation.request.model_validate(values)
    except ValidationError as error:
        return None, {str(item["loc"][0]) if item["loc"] else "": problem_of(item) for item in error.errors()}
    except WrongId as error:
        return None, {"": error.message}
    return request, {}


def _value(annotation: Any, text: str) -> object:
    if takes_several(annotation) and text.strip() == "[]":
        return []
    if takes_several(annotation):
        return [item.strip() for item in text.split(",")]
    if takes_object(annotation):
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"not JSON: {error}") from error
    kind = value_type(annotation)
    if kind is bool:
        return _yes_or_no(text)
    if isinstance(kind, type) and issubclass(kind, IntEnum):
        return _named(kind, text)
    return text.strip() if kind in (int, float) else text


def _yes_or_no(text: str) -> bool:
    known = {"yes": True, "y": True, "true": True, "no": False, "n": False, "false": False}
    if text.strip().lower() not in known:
        raise ValueError("yes or no")
    return known[text.strip().lower()]


def _named(kind: type[IntEnum], text: str) -> IntEnum:
    try:
        return kind[text.strip().upper()]
    except KeyError:
        raise ValueError(f"one of: {', '.join(member.name.lower() for member in kind)}") from None
