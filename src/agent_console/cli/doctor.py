"""`doctor`: looks at everything between the operator's fingers and the data, and says what to do."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from itertools import groupby

from agent_console.cli.ending import wait_for
from agent_console.cli.local_facts import local_facts
from agent_console.cli.output import OutputForm, TableColumn, emit, emit_one, narrate, refuse_ids, silence
from agent_console.config import load
from agent_console.domain.doctor import findings, is_fine, summary
from agent_console.domain.doctor_facts import FarFacts, LocalFacts
from agent_console.domain.errors import ConsoleError
from agent_console.domain.findings import Finding

Sheet = TableColumn[dict[str, object]]
"""One line of the sheet: what was looked at before, what was found and what to do behind it."""


def print_examination(options: Mapping[str, object], output: OutputForm) -> int:
    """0 when nothing is wrong, 1 when something is; warnings are no fault."""
    refuse_ids(output)
    local = local_facts(options)
    found = findings(local, wait_for(_far(options, local)))
    if output is OutputForm.JSON:
        emit(found, (), OutputForm.JSON)
    else:
        emit_one({}, list(_sheet(found)), OutputForm.TABLE)
    narrate(summary(found))
    return 0 if is_fine(found) else 1


def _sheet(found: tuple[Finding, ...]) -> Iterator[Sheet]:
    for part, group in groupby(found, key=lambda finding: finding.part):
        yield TableColumn(part, lambda _: "")
        for finding in group:
            words = f"{finding.value}\n→ {finding.advice}" if finding.advice else finding.value
            yield TableColumn(f"  {finding.verdict.glyph} {finding.what}", partial(_said, words))


def _said(words: str, _: dict[str, object]) -> str:
    return words


async def _far(options: Mapping[str, object], local: LocalFacts) -> FarFacts | None:
    """Nothing to ask where the configuration leads nowhere; whatever else goes wrong is a finding."""
    if local.profile is None:
        return None
    from agent_console.cli.opening import opened
    from agent_console.repository.examining import examined

    try:
        async with opened(load(options).profile, silence) as repository:
            return await examined(repository, lambda: datetime.now(UTC))
    except ConsoleError as error:
        return FarFacts(problem=error.message, hint=error.hint)
