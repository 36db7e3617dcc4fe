"""What a policy file would change, line by line, or what is wrong with it."""

from collections.abc import Iterator, Mapping

from textual.content import Content

from agent_console.domain.errors import ConsoleError, JSONValue
from agent_console.domain.policy_plans import PlannedStep, PolicyPlan, Step
from agent_console.tui.agent_text import agent_text, system_text
from agent_console.tui.facts import Fact, FactSheet, Heading, Listing, Remark, SheetPart
from agent_console.tui.panes.routes.looks import notes_change, pair_text, policy_change, policy_text
from agent_console.tui.widgets.virtual_table_columns import Column

STEPS_SHOWN = 500
SIGNS: Mapping[Step, tuple[str, str]] = {
    Step.CREATE: ("+", "$text-success"),
    Step.UPDATE: ("~", "$text-warning"),
    Step.DELETE: ("-", "$text-error"),
}
COLUMNS = (
    Column("pair", "Pair", 34, min_width=18),
    Column("change", "Change", None, min_width=20),
)


def plan_sheet(plan: PolicyPlan) -> FactSheet:
    if not plan.steps:
        words = f"The policy is what the file says: {plan.unchanged:,} routes stay as they are."
        return FactSheet((Heading(system_text(words, "bold")),))
    counts = f"{plan.created:,} to add, {plan.updated:,} to change, {plan.deleted:,} to remove"
    heading = Heading(system_text(f"{counts}; {plan.unchanged:,} stay as they are", "bold"))
    rows = tuple(row for step in plan.steps[:STEPS_SHOWN] for row in _rows(step))
    return FactSheet((heading, Listing(COLUMNS, rows), *_left_out(plan)))


def _rows(step: PlannedStep) -> Iterator[tuple[Content, ...]]:
    sign, style = SIGNS[step.step]
    pair = system_text(f"{sign} ", style) + pair_text(step.from_agent, step.to_agent, "")
    match step.step:
        case Step.CREATE:
            yield pair, policy_text(step.becomes)
        case Step.DELETE:
            yield pair, policy_change(step.was, None)
        case Step.UPDATE:
            yield pair, policy_change(step.was, step.becomes)
    if step.step is not Step.DELETE and (step.notes or None) != (step.old_notes or None):
        yield system_text("    notes", "$foreground-muted"), notes_change(step.old_notes, step.notes)


def _left_out(plan: PolicyPlan) -> tuple[SheetPart, ...]:
    left = len(plan.steps) - STEPS_SHOWN
    words = f"and {left:,} more; agent-console routes apply FILE --dry-run lists them all"
    return (Remark(system_text(words, "$text-warning")),) if left > 0 else ()


def refusal_sheet(error: ConsoleError) -> FactSheet:
    """Everything that is wrong with a file, each with its line."""
    heading = Heading(agent_text(f"✗ {error}", "bold $text-error", limit=600))
    told = error.details.get("fields")
    problems = tuple(_problems(told)) if isinstance(told, list) else ()
    return FactSheet((heading, *problems))


def _problems(told: list[JSONValue]) -> Iterator[SheetPart]:
    for item in told:
        if isinstance(item, dict):
            words = agent_text(str(item.get("problem", "")), limit=300)
            yield Fact(agent_text(str(item.get("field", "")), limit=14).plain, words)
