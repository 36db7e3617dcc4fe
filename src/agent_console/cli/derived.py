"""Command-line verbs derived from the declared operations: `jobs.list` is `agent-console jobs list`."""

import inspect
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer
from pydantic import AwareDatetime, BaseModel, ValidationError
from pydantic.fields import FieldInfo

from agent_console.cli.audit_commands import AUDIT_COMMANDS
from agent_console.cli.batches import in_batches
from agent_console.cli.ending import INTERRUPTED, exiting, wait_for
from agent_console.cli.examples import epilog
from agent_console.cli.opening import Load, opened, refuse_read_only
from agent_console.cli.output import OUTPUT, WHOLE_OUTPUT, OutputForm, narrate, refuse_ids, whisper
from agent_console.cli.policy_files import POLICY_COMMANDS
from agent_console.cli.shown import print_answer
from agent_console.domain.errors import Invalid, JSONValue
from agent_console.domain.problems import problem_of
from agent_console.domain.records import Page, PageRequest, Record, Request
from agent_console.repository.operations import NOUNS, OPERATIONS, AnyOperation
from agent_console.repository.operations.fields import (
    default_of,
    help_of,
    id_type,
    item_type,
    range_of,
    takes_object,
    takes_several,
    value_type,
)

if TYPE_CHECKING:
    from agent_console.repository.port import Repository

BY_HAND: Mapping[str, Callable[[Load], Callable[..., None]]] = {**POLICY_COMMANDS, **AUDIT_COMMANDS}
LOOKING: Mapping[str, int] = {"list": 0, "get": 1}
ASKS_FOR_HELP = (("--help",), ("-h",))
PLACEHOLDERS: Mapping[object, str] = {int: "N", float: "N", AwareDatetime: "TIME"}
LONGEST_PLACEHOLDER = 12


def add_nouns(app: typer.Typer, load: Load, *words: str) -> None:
    """Making all of them takes longer than most commands do: when the words name some, only those are made, and
    for a list of what there is they need no verbs. Looking comes before changing."""
    named = {word.replace("-", "_") for word in words}
    asked = [operation for operation in OPERATIONS if operation.noun in named] or OPERATIONS
    groups: dict[str, typer.Typer] = {}
    for noun in dict.fromkeys(operation.noun for operation in asked):
        groups[noun] = typer.Typer(help=NOUNS[noun], short_help=NOUNS[noun], no_args_is_help=True)
        app.add_typer(groups[noun], name=noun.replace("_", "-"))
    if words[:1] not in ASKS_FOR_HELP:
        for operation in sorted(asked, key=lambda operation: LOOKING.get(operation.action, len(LOOKING))):
            _add_verb(groups[operation.noun], operation, load)


def _add_verb(group: typer.Typer, operation: AnyOperation, load: Load) -> None:
    by_hand = BY_HAND.get(operation.name)
    command = command_of(operation, load) if by_hand is None else by_hand(load)
    action = operation.action.replace("_", "-")
    examples = epilog(f"{operation.noun.replace('_', '-')} {action}")
    # Said as its own short form, it is not cut in the list of verbs.
    group.command(action, help=operation.summary, short_help=operation.summary, epilog=examples)(command)


def command_of(operation: AnyOperation, load: Load) -> Callable[..., None]:
    """A command whose options are the fields of the operation's request."""

    @exiting
    def command(output: OutputForm, **given: Any) -> int:
        request = request_of(operation, given)
        if not has_ids(operation.answer):
            refuse_ids(output)
        settings = load()
        if operation.changes:
            refuse_read_only(settings)

        async def ask() -> tuple[BaseModel, int]:
            async with opened(settings.profile, whisper) as repository:
                if operation.batched:
                    worked = await in_batches(repository, operation, request)
                    return worked.answer, INTERRUPTED if worked.stopped else 0
                return await filled_page(repository, operation, request), 0

        answer, code = wait_for(ask())
        _print(operation, answer, output)
        return code

    keyword = inspect.Parameter.KEYWORD_ONLY
    option = OUTPUT if has_ids(operation.answer) else WHOLE_OUTPUT
    form = inspect.Parameter("output", keyword, annotation=Annotated[OutputForm, option], default=OutputForm.TABLE)
    vars(command)["__signature__"] = inspect.Signature([*parameters_of(operation), form])
    return command


def has_ids(answer: type[BaseModel]) -> bool:
    """A page has them if what it holds does."""
    items = answer.model_fields.get("items")
    held = answer if items is None else get_args(items.annotation)[0]
    return "id" in held.model_fields


async def filled_page(repository: "Repository", operation: AnyOperation, request: Request) -> BaseModel:
    """The answer. A filtered page that found little in much is filled up: who reads a table sees whole pages."""
    answer: BaseModel = await repository.call(operation, request)
    if not isinstance(request, PageRequest) or not getattr(request, "filter", None):
        return answer
    while isinstance(answer, Page) and answer.next is not None and len(answer.items) < request.limit:
        rest = {"after": answer.next, "limit": request.limit - len(answer.items)}
        more: Page[Record] = await repository.call(operation, request.model_copy(update=rest))
        answer = answer.model_copy(update={"items": answer.items + more.items, "next": more.next})
    return answer


def parameters_of(operation: AnyOperation) -> list[inspect.Parameter]:
    """An option or argument for every field of the operation's request, the required ones first."""
    fields = operation.request.model_fields
    return [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            annotation=_annotation(operation, name, info),
            default=_default(info),
        )
        for name, info in sorted(fields.items(), key=lambda field: not field[1].is_required())
    ]


def _print(operation: AnyOperation, answer: BaseModel, output: OutputForm) -> None:
    """A list that goes on after a number of its own says so in its own words."""
    following = getattr(answer, "next", None)
    if following is None or "after" in operation.request.model_fields:
        print_answer(answer, output)
        return
    name = next(name for name in operation.request.model_fields if name.startswith("after_"))
    print_answer(answer.model_copy(update={"next": None}), output)
    narrate(f"There are more rows. Get them with: --{name.replace('_', '-')} {following}")


def _default(info: FieldInfo) -> Any:
    if info.is_required():
        return inspect.Parameter.empty
    return None


def _annotation(operation: AnyOperation, name: str, info: FieldInfo) -> Any:
    words = _help(info)
    if name in operation.path_fields:
        return Annotated[str, typer.Argument(help=words, metavar=_metavar(info, name))]
    plain = _plain(name)
    flag = f"--{plain}"
    if value_type(info.annotation) is bool:
        switch = typer.Option(f"{flag}/--no-{plain}", help=words, show_default=False)
        return Annotated[bool if info.is_required() else bool | None, switch]
    option = typer.Option(flag, help=words, metavar=_metavar(info, name), show_default=False)
    if takes_several(info.annotation):
        return Annotated[list[str] if info.is_required() else list[str] | None, option]
    return Annotated[str if info.is_required() else str | None, option]


def _metavar(info: FieldInfo, name: str) -> str:
    if (kind := id_type(info)) is not None:
        return f"{kind.prefix}_…"
    if takes_object(info.annotation):
        return "JSON"
    short = name if len(name) <= LONGEST_PLACEHOLDER else name.rpartition("_")[2]
    return PLACEHOLDERS.get(item_type(info.annotation), short.upper())


def _help(info: FieldInfo) -> str:
    words = help_of(info)
    if takes_object(info.annotation):
        words += " @file reads a file, - reads standard input."
    if takes_several(info.annotation) and not info.is_required() and info.default is None:
        words += " [] is an empty list."
    if takes_several(info.annotation) and "repeat for several" not in words:
        words += " Repeat for several."
    default = default_of(info)
    facts = [f"default: {default}" if default else "", range_of(info)]
    told = "; ".join(fact for fact in facts if fact)
    return f"{words} [{told}]" if told else words


def request_of(operation: AnyOperation, given: dict[str, Any]) -> Any:
    """Check what was typed as the server would; the error names the options."""
    values = {name: value for name, value in given.items() if value is not None and value != []}
    # An empty list is something else than none at all, and has to be said.
    values = {name: [] if value == ["[]"] else value for name, value in values.items()}
    for name, info in operation.request.model_fields.items():
        if name in values and takes_object(info.annotation):
            values[name] = _json(f"--{_plain(name)}", values[name])
    try:
        return operation.request.model_validate(values)
    except ValidationError as error:
        problems: list[JSONValue] = [
            {"field": _said_as(operation, item["loc"]), "problem": problem_of(item)} for item in error.errors()
        ]
        noun, verb = operation.noun.replace("_", "-"), operation.action.replace("_", "-")
        raise Invalid(
            "These options can't be used as they are.",
            hint=f"See: agent-console {noun} {verb} --help",
            details={"fields": problems},
        ) from error


def _said_as(operation: AnyOperation, place: tuple[int | str, ...]) -> str:
    """How the command line calls a field, and what is inside of it. What is wrong with several has no place."""
    if not place:
        return "together"
    field, *inside = map(str, place)
    if field in operation.path_fields:
        return _metavar(operation.request.model_fields[field], field)
    return " ".join([f"--{_plain(field)}", *filter(None, [".".join(inside)])])


def _plain(field: str) -> str:
    return field.removesuffix("_id").replace("_", "-")


def _json(option: str, text: str) -> Any:
    try:
        if text == "-":
            text = sys.stdin.read()
        elif text.startswith("@"):
            text = Path(text[1:]).read_text(encoding="utf-8")
    except OSError as error:
        raise Invalid(
            f"{option}: {text[1:]} can't be read: {error.strerror}.",
            hint="@ names a file; without it, JSON follows.",
        ) from error
    except UnicodeDecodeError as error:
        raise Invalid(f"{option}: what is given is not UTF-8 text.", hint="JSON is written in UTF-8.") from error
    try:
        return json.loads(text)
    except ValueError as error:
        problem: JSONValue = {"field": option, "problem": f"not readable as JSON: {error}"}
        raise Invalid(
            f"{option} must be JSON.", hint="""Such as: '{"key": "value"}'.""", details={"fields": [problem]}
        ) from error
