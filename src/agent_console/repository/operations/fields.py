"""The fields of a request as a person meets them: in a form, as options of a command."""

import types
from enum import Enum
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from agent_console.domain.ids import Id
from agent_console.domain.records import LARGEST_COUNT


def value_type(annotation: Any) -> Any:
    """The type behind Optional and Annotated."""
    origin = get_origin(annotation)
    if origin in (Union, types.UnionType):
        return value_type(next(part for part in get_args(annotation) if part is not types.NoneType))
    if origin is Annotated:
        return value_type(get_args(annotation)[0])
    return annotation


def takes_several(annotation: Any) -> bool:
    """Several plain values, each given by itself. Several objects are given together, as JSON."""
    return _is_many(annotation) and not _is_model(get_args(value_type(annotation))[0])


def takes_object(annotation: Any) -> bool:
    """Something with parts of its own, given as JSON."""
    kind = value_type(annotation)
    if get_origin(kind) is dict or _is_model(kind):
        return True
    return _is_many(annotation) and _is_model(get_args(kind)[0])


def _is_many(annotation: Any) -> bool:
    return get_origin(value_type(annotation)) in (tuple, list, frozenset)


def _is_model(annotation: Any) -> bool:
    kind = value_type(annotation)
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def item_type(annotation: Any) -> Any:
    """The type of one value, also where several may be given."""
    kind = value_type(annotation)
    return value_type(get_args(kind)[0]) if takes_several(annotation) else kind


def help_of(info: FieldInfo) -> str:
    """The field's own words, and what its type adds to them."""
    kind = item_type(info.annotation)
    id_kind = id_type(info)
    words = [info.description or ("" if id_kind is None else f"The id of {id_kind.noun}.")]
    if isinstance(kind, type) and issubclass(kind, Enum):
        words.append(f"One of: {', '.join(shown_value(member) for member in kind)}.")
    return " ".join(words).strip()


def id_type(info: FieldInfo) -> type[Id] | None:
    """Whose id it takes, one or several; None for anything else."""
    kind = item_type(info.annotation)
    return kind if isinstance(kind, type) and issubclass(kind, Id) else None


def range_of(info: FieldInfo) -> str:
    """Which numbers are taken; empty when nobody could count so far, or it takes no number."""
    if value_type(info.annotation) not in (int, float):
        return ""
    least = next((bound.ge for bound in info.metadata if hasattr(bound, "ge")), None)
    most = next((bound.le for bound in info.metadata if hasattr(bound, "le")), None)
    if least is None or most is None or most >= LARGEST_COUNT:
        return ""
    return f"{shown_value(least)} to {shown_value(most)}"


def default_of(info: FieldInfo) -> str:
    """The default as it would be typed; empty when there is none worth telling."""
    if info.is_required() or info.default in (None, (), "", frozenset()) or info.default_factory:
        return ""
    return shown_value(info.default)


def shown_value(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Enum):
        return value.name.lower() if isinstance(value.value, int) else str(value.value)
    if isinstance(value, float):
        return f"{value:g}"
    return str(value)
