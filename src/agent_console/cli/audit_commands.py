"""What the command line does with the audit trail beyond asking once: follow it, prove it, take it away."""

import asyncio
import inspect
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Annotated, Any, TextIO

import typer

from agent_console.cli.batches import interruption
from agent_console.cli.ending import INTERRUPTED, exiting, wait_for
from agent_console.cli.opening import Load, opened
from agent_console.cli.output import (
    OUTPUT,
    WHOLE_OUTPUT,
    OutputForm,
    narrate,
    progress,
    refuse_ids,
    silence,
    write,
)
from agent_console.cli.shown import print_answer
from agent_console.domain.audit_export import AuditExport
from agent_console.domain.audit_proof import Verification, Verified
from agent_console.domain.audit_trail import AuditRow, AuditTail
from agent_console.domain.errors import CannotConnect, DatabaseUnavailable, Invalid, TimedOut
from agent_console.domain.records import shown_time
from agent_console.domain.safe_text import safe_text
from agent_console.repository.operations import AnyOperation
from agent_console.repository.operations.audit_trail import AUDIT_EXPORT, AUDIT_TAIL, AUDIT_VERIFY
from agent_console.repository.port import Repository

DAMAGED = 1
# Short, so that whoever presses Ctrl-C does not wait for long; what is new comes at once all the same.
LISTEN_SECONDS = 1.0
FOLLOW = Annotated[bool, typer.Option("--follow", "-f", help="Go on as more is sealed, until Ctrl-C.")]
FILE = Annotated[str | None, typer.Option(help="Write to this new file, readable by you alone.", metavar="FILE")]


def _with_options(command: Callable[..., None], operation: AnyOperation, **more: Any) -> Callable[..., None]:
    """The options of the operation's request, and a few that only the command line has."""
    from agent_console.cli.derived import parameters_of

    keyword = inspect.Parameter.KEYWORD_ONLY
    further = [
        inspect.Parameter(name, keyword, annotation=annotation, default=default)
        for name, (annotation, default) in more.items()
    ]
    vars(command)["__signature__"] = inspect.Signature([*parameters_of(operation), *further])
    return command


def _request(operation: AnyOperation, given: dict[str, Any]) -> Any:
    from agent_console.cli.derived import request_of

    return request_of(operation, given)


def tail_command(load: Load) -> Callable[..., None]:
    @exiting
    def tail(follow: bool, output: OutputForm, **given: Any) -> int:
        request: AuditTail = _request(AUDIT_TAIL, given)
        settings = load()

        async def ask() -> int:
            async with opened(settings.profile, silence) as repository:
                if follow:
                    await _follow(repository, request, output)
                    return INTERRUPTED
                page = await repository.call(AUDIT_TAIL, request)
                print_answer(page, output)
                return 0

        return wait_for(ask())

    return _with_options(
        tail, AUDIT_TAIL, follow=(FOLLOW, False), output=(Annotated[OutputForm, OUTPUT], OutputForm.TABLE)
    )


async def _follow(repository: Repository, request: AuditTail, output: OutputForm) -> None:
    """A line for each act, until Ctrl-C. Who is away for a while is waited for, and nothing is left out."""
    with interruption() as stop:
        while not stop.is_set():
            try:
                page = await repository.call(AUDIT_TAIL, request)
            except (CannotConnect, DatabaseUnavailable, TimedOut) as error:
                narrate(f"{error.message} Trying again …")
                with suppress(TimeoutError):
                    async with asyncio.timeout(LISTEN_SECONDS):
                        await stop.wait()
                continue
            for row in page.items:
                write(sys.stdout, f"{_line(row, output)}\n")
            request = request.model_copy(update={"after_position": page.position, "wait_seconds": LISTEN_SECONDS})


def _line(row: AuditRow, output: OutputForm) -> str:
    if output is OutputForm.JSON:
        return json.dumps(row.model_dump(mode="json"))
    if output is OutputForm.IDS:
        return str(row.id)
    decided = f" {row.decision.value}" if row.decision else ""
    words = f"{row.position}  {shown_time(row.created_at)}  {row.actor}  {row.action}{decided}  {row.resource_id}"
    return safe_text(words)


def verify_command(load: Load) -> Callable[..., None]:
    @exiting
    def verify(output: OutputForm, **given: Any) -> int:
        refuse_ids(output)
        request: Verification = _request(AUDIT_VERIFY, given)
        settings = load()

        async def ask() -> Verified:
            async with opened(settings.profile, silence) as repository:
                return await _verified(repository, request)

        found = wait_for(ask())
        print_answer(found, output)
        if found.damage is None:
            narrate(f"The trail holds: {found.position:,} acts, {found.done:,} of them taken anew.")
            return 0
        narrate(f"DAMAGED ({found.damage.kind.value}): {found.damage.message}.")
        return DAMAGED

    return _with_options(verify, AUDIT_VERIFY, output=(Annotated[OutputForm, WHOLE_OUTPUT], OutputForm.TABLE))


async def _verified(repository: Repository, request: Verification) -> Verified:
    done = 0
    while True:
        part = await repository.call(AUDIT_VERIFY, request)
        done += part.done
        if part.next is None:
            progress("")
            return part.model_copy(update={"done": done})
        progress(f"{part.position:,} hold, {part.left:,} left")
        request = request.model_copy(update={"after": part.next})


def export_command(load: Load) -> Callable[..., None]:
    @exiting
    def export(file: str | None, **given: Any) -> None:
        request: AuditExport = _request(AUDIT_EXPORT, given)
        settings = load()

        async def ask() -> None:
            async with opened(settings.profile, silence) as repository:
                with _destination(file) as out:
                    await _export(repository, request, out)

        wait_for(ask())

    return _with_options(export, AUDIT_EXPORT, file=(FILE, None))


async def _export(repository: Repository, request: AuditExport, out: TextIO) -> None:
    rows = 0
    while True:
        part = await repository.call(AUDIT_EXPORT, request)
        write(out, part.text)
        rows += part.rows
        if part.next is None:
            break
        progress(f"{rows:,} written")
        request = request.model_copy(update={"after_position": int(part.next)})
    progress("")
    narrate(f"{rows:,} acts, up to position {part.position:,}.")


@contextmanager
def _destination(file: str | None) -> Iterator[TextIO]:
    if file is None:
        yield sys.stdout
        return
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise Invalid(
            f"{file} can't be written: {error.strerror}.", hint="Name a file that is not there yet."
        ) from error
    with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as out:
        yield out


AUDIT_COMMANDS: Mapping[str, Callable[[Load], Callable[..., None]]] = {
    AUDIT_TAIL.name: tail_command,
    AUDIT_VERIFY.name: verify_command,
    AUDIT_EXPORT.name: export_command,
}
