"""The command line as it is declared, to be walked and to be asked whether it would take some words."""

from collections.abc import Iterator, Sequence
from functools import cache

from typer import Context
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption
from typer.main import get_command

from agent_console.cli import main
from agent_console.cli.agent_commands import add_agent
from agent_console.cli.derived import add_nouns

Parameter = TyperArgument | TyperOption


@cache
def command_line() -> TyperGroup:
    """As `run` makes it."""
    add_agent(main.app, main.load)
    add_nouns(main.app, main.load)
    made = get_command(main.app)
    assert isinstance(made, TyperGroup)
    return made


def commands(group: TyperGroup | None = None, path: str = "") -> Iterator[tuple[str, TyperCommand]]:
    """Every command with the words that lead to it."""
    for name, command in (group or command_line()).commands.items():
        if isinstance(command, TyperGroup):
            yield from commands(command, f"{path}{name} ")
        else:
            assert isinstance(command, TyperCommand)
            yield f"{path}{name}", command


def groups() -> Iterator[TyperGroup]:
    """The nouns, each with its verbs."""
    yield from (one for one in command_line().commands.values() if isinstance(one, TyperGroup))


def options() -> Iterator[tuple[str, TyperOption]]:
    """Every option that takes a value, with the words of its command."""
    everything: list[tuple[str, TyperCommand | TyperGroup]] = [("", command_line()), *commands()]
    for path, command in everything:
        yield from ((path, one) for one in parameters(command) if isinstance(one, TyperOption) and not one.is_flag)


def helped(command: TyperCommand | TyperGroup) -> str:
    """What its --help says."""
    return command.get_help(Context(command))


def parameters(command: TyperCommand | TyperGroup) -> list[Parameter]:
    return [one for one in command.params if isinstance(one, Parameter)]


def accepted(words: Sequence[str]) -> bool:
    """Whether these words are a command with options that it has; it is not run."""
    group, left = command_line(), list(words)
    while True:
        context = group.make_context("agent-console", left, allow_interspersed_args=False)
        name, command, left = group.resolve_command(context, [*context._protected_args, *context.args])
        if not isinstance(command, TyperGroup):
            assert isinstance(command, TyperCommand)
            command.make_context(name, left)
            return True
        group = command
