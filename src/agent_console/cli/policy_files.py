"""Policy files on the command line: `routes export > policy.yaml`, `routes apply policy.yaml --dry-run`."""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from agent_console.cli.ending import exiting, wait_for
from agent_console.cli.opening import Load, opened, refuse_read_only
from agent_console.cli.output import WHOLE_OUTPUT, OutputForm, TableColumn, emit, narrate, refuse_ids, whisper
from agent_console.cli.shown import print_answer
from agent_console.domain.errors import Invalid
from agent_console.domain.policy_plans import (
    POLICY_FILE_BYTES,
    PlannedStep,
    PolicyApplication,
    PolicyPlan,
    Step,
    policy_text,
)
from agent_console.domain.records import Nothing
from agent_console.repository.operations.routes import ROUTES_APPLY, ROUTES_EXPORT

UNREADABLE = "Nothing was changed. Name a file that you can read, or - for standard input."
NOT_A_POLICY = "Nothing was changed. Name a file as `routes export` writes it."
SIGNS = {Step.CREATE: "+ create", Step.UPDATE: "~ update", Step.DELETE: "- delete"}


def export_command(load: Load) -> Callable[..., None]:
    @exiting
    def export(output: Annotated[OutputForm, WHOLE_OUTPUT] = OutputForm.TABLE) -> None:
        refuse_ids(output)
        settings = load()

        async def ask() -> None:
            async with opened(settings.profile, whisper) as repository:
                policy = await repository.call(ROUTES_EXPORT, Nothing())
            if output is OutputForm.JSON:
                print_answer(policy, output)
            else:
                sys.stdout.buffer.write(policy.text.encode())

        wait_for(ask())

    return export


def apply_command(load: Load) -> Callable[..., None]:
    @exiting
    def apply(
        file: Annotated[str, typer.Argument(help="The policy file; - reads standard input.", metavar="FILE")],
        dry_run: Annotated[bool, typer.Option("--dry-run", help="Change nothing: only show the plan.")] = False,
        keep_missing: Annotated[
            bool, typer.Option("--keep-missing", help="Keep the routes that the file does not name.")
        ] = False,
        expect_digest: Annotated[
            str | None,
            typer.Option(help="Refuse if the policy is not the one this plan was made on.", metavar="DIGEST"),
        ] = None,
        reason: Annotated[
            str | None, typer.Option(help="Why; the history of every changed route keeps it.", metavar="REASON")
        ] = None,
        output: Annotated[OutputForm, WHOLE_OUTPUT] = OutputForm.TABLE,
    ) -> None:
        refuse_ids(output)
        settings = load()
        if not dry_run:
            refuse_read_only(settings)
        request = _request(
            text=text_of(file),
            dry_run=dry_run,
            delete_missing=not keep_missing,
            expect_digest=expect_digest,
            reason=reason,
        )

        async def ask() -> PolicyPlan:
            async with opened(settings.profile, whisper) as repository:
                return await repository.call(ROUTES_APPLY, request)

        _print(wait_for(ask()), output)

    return apply


# Operations whose command is made by hand.
POLICY_COMMANDS: Mapping[str, Callable[[Load], Callable[..., None]]] = {
    ROUTES_EXPORT.name: export_command,
    ROUTES_APPLY.name: apply_command,
}


def _request(**given: object) -> PolicyApplication:
    from agent_console.cli.derived import request_of

    request: PolicyApplication = request_of(ROUTES_APPLY, given)
    return request


def text_of(file: str) -> str:
    try:
        if file == "-":
            content = sys.stdin.buffer.read(POLICY_FILE_BYTES + 1)
        else:
            with Path(file).open("rb") as opened_file:
                content = opened_file.read(POLICY_FILE_BYTES + 1)
    except OSError as error:
        raise Invalid(f"{file} can't be read: {error.strerror}.", hint=UNREADABLE) from error
    return policy_text(content, file, NOT_A_POLICY)


def _print(plan: PolicyPlan, output: OutputForm) -> None:
    if output is OutputForm.JSON:
        print_answer(plan, output)
        return
    if plan.steps:
        emit(plan.steps, STEP_COLUMNS, output)
    narrate(_summary(plan))
    if not plan.applied and plan.steps:
        narrate(f"Apply just this plan with: --expect-digest {plan.digest}")


def _summary(plan: PolicyPlan) -> str:
    counts = (
        f"{plan.created:,} to create, {plan.updated:,} to update, {plan.deleted:,} to delete"
        if not plan.applied
        else f"{plan.created:,} created, {plan.updated:,} updated, {plan.deleted:,} deleted"
    )
    if not plan.steps:
        return f"The policy is what the file says; {_unchanged(plan)}."
    return f"{'Applied' if plan.applied else 'Plan'}: {counts}, {_unchanged(plan)}."


def _unchanged(plan: PolicyPlan) -> str:
    return "1 route unchanged" if plan.unchanged == 1 else f"{plan.unchanged:,} routes unchanged"


def _notes(step: PlannedStep) -> str:
    if step.step is Step.DELETE or step.notes == step.old_notes:
        return ""
    return "(removed)" if step.notes is None else step.notes


STEP_COLUMNS: Sequence[TableColumn[PlannedStep]] = (
    TableColumn("change", lambda step: SIGNS[step.step]),
    TableColumn("from", lambda step: step.from_agent),
    TableColumn("to", lambda step: step.to_agent),
    TableColumn("was", lambda step: "-" if step.was is None else step.was.value),
    TableColumn("becomes", lambda step: "-" if step.becomes is None else step.becomes.value),
    TableColumn("new notes", _notes),
)
