"""Command-line verbs derived from the declared operations: `jobs.list` is `agent-console jobs list`."""

import inspect
import json
import sys
import types
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin

import typer
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from agent_console.cli.ending import ended, wait_for
from agent_console.cli.opening import opened
from agent_console.cli.output import OutputForm, narrate
from agent_console.cli.shown import print_answer
from agent_console.domain.errors import Invalid, JSONValue
from agent_console.domain.ids import Id
from agent_console.repository.operations import NOUNS, OPERATIONS, AnyOperation

if TYPE_CHECKING:
    from agent_console.config import Settings

Load = Callable[[], "Settings"]
FORM = typer.Option("--output", "-o", help="table for people, json for programs, ids for pipes.")


def add_nouns(app: typer.Typer, load: Load) -> None:
    groups: dict[str, typer.Typer] = {}
    for operation in OPERATIONS:
        group = groups.get(operation.noun)
        if group is None:
            group = groups[operation.noun] = typer.Typer(help=NOUNS[operation.noun], no_args_is_help=True)
            app.add_typer(group, name=operation.noun.replace("_", "-"))
        group.command(operation.action.replace("_", "-"), help=operation.summary)(command_of(operation, load))


def command_of(operation: AnyOperation, load: Load) -> Callable[..., None]:
    """A command whose options are the fields of the operation's request."""
    fields = operation.request.model_fields

    def command(output: OutputForm, **given: Any) -> None:
        def run() -> None:
            request = request_of(operation, given)
            settings = load()
            if operation.changes and settings.profile.read_only:
                raise Invalid(
                    f"Profile {settings.profile.name} is read-only.", hint="Choose another with --profile."
                )

            async def ask() -> BaseModel:
                async with opened(settings.profile, _whisper) as repository:
                    answer: BaseModel = await repository.call(operation, request)
                    return answer

            print_answer(wait_for(ask()), output)

        raise typer.Exit(ended(run))

    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = [
        inspect.Parameter(name, keyword, annotation=_annotation(operation, name, info), default=_default(info))
        for name, info in sorted(fields.items(), key=lambda field: not field[1].is_required())
    ]
    parameters.append(
        inspect.Parameter("output", keyword, annotation=Annotated[OutputForm, FORM], default=OutputForm.TABLE)
    )
    vars(command)["__signature__"] = inspect.Signature(parameters)
    return command


def _whisper(sentence: str) -> None:
    """Progress is for a person who waits, not for a pipe."""
    if sys.stderr.isatty():
        narrate(sentence)


def _default(info: FieldInfo) -> Any:
    if info.is_required():
        return inspect.Parameter.empty
    return None


def _annotation(operation: AnyOperation, name: str, info: FieldInfo) -> Any:
    kind = _plain(info.annotation)
    help_text = _help(info, kind)
    if name in operation.path_fields:
        return Annotated[str, typer.Argument(help=help_text, metavar=_metavar(kind, name))]
    flag = f"--{name.removesuffix('_id').replace('_', '-')}"
    option = typer.Option(flag, help=help_text, metavar=_metavar(kind, name), show_default=False)
    if get_origin(info.annotation) is tuple:
        return Annotated[list[str] | None, option]
    return Annotated[str if info.is_required() else str | None, option]


def _plain(annotation: Any) -> Any:
    """The type behind Optional, tuple and Annotated."""
    origin = get_origin(annotation)
    if origin in (Union, types.UnionType):
        return _plain(next(part for part in get_args(annotation) if part is not types.NoneType))
    if origin is tuple or origin is Annotated:
        return _plain(get_args(annotation)[0])
    return annotation


def _metavar(kind: Any, name: str) -> str:
    if isinstance(kind, type) and issubclass(kind, Id):
        return f"{kind.prefix}_…"
    if get_origin(kind) is dict:
        return "JSON"
    if kind is int:
        return "N"
    return name.upper()


def _help(info: FieldInfo, kind: Any) -> str:
    text = info.description or ""
    if isinstance(kind, type) and issubclass(kind, Enum):
        text += f" One of: {', '.join(str(member.value) for member in kind)}."
    if get_origin(kind) is dict:
        text += " @file reads a file, - reads standard input."
    if not info.is_required() and info.default not in (None, (), ""):
        text += f" [default: {info.default}]"
    return text.strip()


def request_of(operation: AnyOperation, given: dict[str, Any]) -> Any:
    """Check what was typed as the server would; the error names the options."""
    values = {name: value for name, value in given.items() if value is not None and value != []}
    for name, info in operation.request.model_fields.items():
        if name in values and get_origin(_plain(info.annotation)) is dict:
            values[name] = _json(name, values[name])
    try:
        return operation.request.model_validate(values)
    except ValidationError as error:
        problems: list[JSONValue] = [
            {"field": f"--{str(item['loc'][0]).replace('_', '-')}", "problem": item["msg"]}
            for item in error.errors()
        ]
        raise Invalid("These options can't be used as they are.", details={"fields": problems}) from error


def _json(name: str, text: str) -> Any:
    try:
        if text == "-":
            text = sys.stdin.read()
        elif text.startswith("@"):
            text = Path(text[1:]).read_text(encoding="utf-8")
        return json.loads(text)
    except (ValueError, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        problem: JSONValue = {"field": f"--{name.replace('_', '-')}", "problem": f"not readable as JSON: {reason}"}
        raise Invalid(
            f"--{name} must be JSON.", hint="""Such as: '{"key": "value"}'.""", details={"fields": [problem]}
        ) from error
