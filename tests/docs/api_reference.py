"""docs/api.md: every operation as the server offers it, made from the declarations alone."""

from collections.abc import Iterator, Mapping
from types import NoneType
from typing import get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from agent_console.domain.ids import Id
from agent_console.domain.records import Page
from agent_console.repository.operations import NOUNS, OPERATIONS, AnyOperation
from agent_console.repository.operations.fields import default_of, help_of, item_type, range_of, takes_several
from tests.docs.blocks import REPOSITORY

PAGE = REPOSITORY / "docs" / "api.md"
WORDS: Mapping[str, str] = {
    "str": "text", "int": "whole number", "float": "number", "bool": "yes or no", "datetime": "time",
    "UUID": "UUID", "dict": "object", "SecretStr": "text",
}  # fmt: skip
HEAD = """\
# Every operation

After this page you know what can be asked of a server, with which right, and what it answers. It is made from the
declared operations by `python -m tests.docs.write`. Which role has which right is in
[operating](operating.md#roles), what all of them share in [the HTTP API](http.md); the same as OpenAPI is at
`/openapi.json` of every server.

A field in the path is given there; the others travel in the query of a `GET` and in the JSON body of everything
else. Fields in bold have to be given. A page is `items` and `next`.
"""


def api_reference() -> str:
    return "".join([HEAD, *(_noun(noun) for noun in NOUNS)])


def _noun(noun: str) -> str:
    operations = [operation for operation in OPERATIONS if operation.noun == noun]
    return f"\n## {noun}\n\n{NOUNS[noun]}\n" + "".join("\n" + _operation(operation) for operation in operations)


def _operation(operation: AnyOperation) -> str:
    lines = [f"### `{operation.verb.value} {operation.path}`", "", f"{operation.summary} {_facts(operation)}"]
    fields = list(_fields(operation))
    return "\n".join([*lines, "", *fields, *([""] if fields else []), _answer(operation), ""])


def _facts(operation: AnyOperation) -> str:
    needs = "No credential." if operation.public else f"Right: {_right(operation)}."
    command = f"`agent-console {operation.noun.replace('_', '-')} {operation.action.replace('_', '-')}`."
    audit = f" In the trail: `{operation.audit}`." if operation.audit else ""
    pace = f" At most {operation.per_minute} a minute." if operation.per_minute else ""
    return f"{needs} Command: {command}{audit}{pace}"


def _right(operation: AnyOperation) -> str:
    return "any credential" if operation.permission is None else f"`{operation.permission.value}`"


def _fields(operation: AnyOperation) -> Iterator[str]:
    for name, info in operation.request.model_fields.items():
        shown = f"**`{name}`**" if info.is_required() else f"`{name}`"
        default = f" Unless given: {default_of(info)}." if default_of(info) else ""
        taken = f" {range_of(info)}." if range_of(info) else ""
        yield f"- {shown} ({_kind(info)}): {help_of(info)}{taken}{default}"


def _kind(info: FieldInfo) -> str:
    kind = _name(item_type(info.annotation))
    return f"several: {kind}" if takes_several(info.annotation) else kind


def _name(kind: object) -> str:
    if isinstance(kind, type) and issubclass(kind, Id):
        return f"`{kind.prefix}_…`"
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return f"object {kind.__name__}"
    name = getattr(kind, "__name__", "object")
    return WORDS.get(name, "word" if name not in ("list", "tuple") else "several")


def _answer(operation: AnyOperation) -> str:
    status = "201" if operation.created else "200"
    status += " or 202" if operation.accepted is not None else ""
    answer, prefix = operation.answer, ""
    if issubclass(answer, Page):
        [item] = [
            kind for kind in get_args(answer.model_fields["items"].annotation) if kind not in (NoneType, ...)
        ]
        if isinstance(item, type) and issubclass(item, BaseModel):
            answer, prefix = item, "a page of "
    fields = ", ".join(f"`{name}`" for name in answer.model_fields)
    return f"Answers {status} with {prefix}{fields}." if fields else f"Answers {status} with nothing."
