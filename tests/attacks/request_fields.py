"""Every id, text and number that an operation takes, found in its request, however deep it lies there."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, TypeVar, get_args, get_origin

from pydantic import BaseModel

from agent_console.domain.ids import Id
from agent_console.repository.operations import OPERATIONS, AnyOperation

Values = Mapping[str, object]
Kind = TypeVar("Kind")
KEY = "words"
"""Under which a text stands in an object that takes anything."""


@dataclass(frozen=True)
class Field(Generic[Kind]):
    """`path` leads to the field; `holds` says of each step whether it is one, a list or an object."""

    operation: AnyOperation
    path: tuple[str, ...]
    holds: tuple[type, ...]
    kind: type[Kind]

    @property
    def name(self) -> str:
        return f"{self.operation.name} {'.'.join(self.path)}"

    def filled(self, values: Values, value: object) -> Values:
        """The same request with another value there; ids stand as they are shown."""
        return _filled(values, self.path, self.holds, str(value) if isinstance(value, Id) else value)


IdField = Field[Id]


def _filled(values: Values, path: tuple[str, ...], holds: tuple[type, ...], value: object) -> Values:
    name, *rest = path
    if rest:
        inside = values.get(name)
        below = (inside[0] if inside else {}) if isinstance(inside, list) else inside
        value = _filled(below if isinstance(below, Mapping) else {}, tuple(rest), holds[1:], value)
    if holds[0] is dict:
        return {**values, name: {KEY: value}}
    return {**values, name: [value] if holds[0] is list else value}


def id_fields() -> tuple[IdField, ...]:
    return _every(Id)


def text_fields() -> tuple[Field[str], ...]:
    return _every(str)


def number_fields() -> tuple[Field[Any], ...]:
    """Where a number stands, and every object that takes anything: one may stand in it."""
    whole = (field for field in _every(int) if field.kind is not bool)
    objects = (field for field in text_fields() if field.holds[-1] is dict)
    return *_every(float), *whole, *objects


def _every(kind: type[Kind]) -> tuple[Field[Kind], ...]:
    return tuple(
        Field(operation, path, holds, found)
        for operation in OPERATIONS
        for path, holds, found in dict.fromkeys(_fields_of(operation.request, kind))
    )


_Found = Iterator[tuple[tuple[str, ...], tuple[type, ...], type[Kind]]]


def _fields_of(model: type[BaseModel], kind: type[Kind]) -> _Found[Kind]:
    for name, info in model.model_fields.items():
        for path, holds, found in _kinds_in(info.annotation, kind, object):
            yield (name, *path), holds, found


def _kinds_in(annotation: object, kind: type[Kind], held: type) -> _Found[Kind]:
    origin = get_origin(annotation)
    if origin is None and isinstance(annotation, type):
        if issubclass(annotation, BaseModel):
            for path, holds, found in _fields_of(annotation, kind):
                yield path, (held, *holds), found
        elif issubclass(annotation, kind) and not issubclass(annotation, Enum):
            yield (), (held,), annotation
    elif origin is dict:
        yield from _kinds_in(get_args(annotation)[0], kind, dict)
    else:
        within = list if origin in (tuple, list, frozenset) else held
        for part in get_args(annotation):
            yield from _kinds_in(part, kind, within)
