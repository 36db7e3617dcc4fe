"""How a command ends: the right exit code, one clear sentence, never a traceback for a user's mistake."""

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine
from functools import wraps
from types import FrameType
from typing import Any, NoReturn, ParamSpec, TypeVar

from agent_console.domain.errors import ConsoleError

INTERRUPTED = 130

Answer = TypeVar("Answer")
Given = ParamSpec("Given")


def tell(error: ConsoleError) -> int:
    """Say what went wrong and what to do next; the answer is the exit code."""
    from agent_console.cli.output import narrate
    from agent_console.tui.terminal.skeleton import withdraw

    withdraw()
    narrate(f"Error: {error.message}")
    if error.hint:
        narrate(error.hint)
    for field in _fields(error):
        narrate(f"  {field}")
    return error.exit_code


def _fields(error: ConsoleError) -> list[str]:
    fields = error.details.get("fields")
    if not isinstance(fields, list):
        return []
    return [f"{field.get('field')}: {field.get('problem')}" for field in fields if isinstance(field, dict)]


def ended(command: Callable[[], int | None]) -> int:
    """Run a command to its exit code."""
    try:
        code = command() or 0
        sys.stdout.flush()
    except ConsoleError as error:
        return tell(error)
    except (KeyboardInterrupt, asyncio.CancelledError):
        sys.stderr.write("Interrupted.\n")
        return INTERRUPTED
    except BrokenPipeError:
        # The reader (head, a pager) has what it wanted. Python would complain once more while closing.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return code


def exiting(command: Callable[Given, int | None]) -> Callable[Given, NoReturn]:
    """A command of typer that ends with its own exit code, and with a sentence where it is refused."""

    @wraps(command)
    def run(*args: Given.args, **kwargs: Given.kwargs) -> NoReturn:
        import typer

        raise typer.Exit(ended(lambda: command(*args, **kwargs)))

    return run


def leave_on_signals() -> None:
    """A command that is ended puts away what it started, such as a database. What is ignored stays ignored."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _leave)


def _leave(number: int, _: FrameType | None) -> None:
    # A second one ends it at once.
    signal.signal(number, signal.SIG_DFL)
    raise SystemExit(128 + number)


def wait_for(work: Coroutine[Any, Any, Answer] | Awaitable[Answer]) -> Answer:
    async def run() -> Answer:
        return await work

    return asyncio.run(run())
