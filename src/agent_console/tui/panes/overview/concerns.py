"""What needs somebody now: things in trouble, and conditions under which nothing goes well."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from textual.content import Content

from agent_console.domain.agents import PoolStatus
from agent_console.domain.attention import AttentionItem, AttentionKind
from agent_console.domain.audit_trail import SealStatus
from agent_console.domain.duties import DutyState, duty_warnings
from agent_console.domain.pausing import Pause
from agent_console.domain.queue_stats import QueueStats
from agent_console.domain.spans import ago, span, until
from agent_console.tui.agent_text import agent_text, system_text
from agent_console.tui.panes.audit.chain import is_late
from agent_console.tui.panes.overview.ways import to_duties, to_jobs, to_pane, to_thing
from agent_console.tui.wanted import Wanted
from agent_console.tui.widgets.rows import Row
from agent_console.tui.widgets.virtual_table_columns import Column

COLUMNS = (
    Column("what", "What", 13, min_width=13),
    Column("name", "Which", None, min_width=16, narrow_to=10),
    Column("since", "Since", 7, align="right"),
    Column("says", "What is known", None, min_width=24, narrow_to=12),
)

WARNING, DANGER = "$text-warning", "bold $text-error"
LOOKS: dict[AttentionKind, tuple[str, str]] = {
    AttentionKind.APPROVAL: ("? approval", "bold $text-warning"),
    AttentionKind.DEAD_LETTER: ("▲ dead letter", DANGER),
    AttentionKind.AGENT_ERROR: ("▲ agent error", DANGER),
    AttentionKind.AGENT_SILENT: ("○ silent", WARNING),
    AttentionKind.RUN_TIMEOUT: ("✗ timed out", "$text-error"),
}
NAME_SHOWN = 100
SAYS_SHOWN = 300


@dataclass(frozen=True)
class Concern:
    """One line, and where it leads. `name` and `says` may be words of others."""

    id: str
    what: str
    style: str
    name: str
    way: Callable[[], Wanted]
    since: datetime | None = None
    until: datetime | None = None
    says: str = ""

    def row(self, now: datetime) -> Row:
        says = agent_text(self.says, "$foreground-muted", limit=SAYS_SHOWN)
        if self.until is not None:
            says = system_text(f"expires {until(self.until, now)} ", WARNING) + says
        since = system_text("" if self.since is None else ago(self.since, now), "$foreground-muted")
        cells: tuple[Content, ...] = (
            system_text(self.what, self.style),
            agent_text(self.name, limit=NAME_SHOWN),
            since,
            says,
        )
        return Row(self.id, cells)


@dataclass(frozen=True)
class Conditions:
    """What is known of how everything goes; None where nobody has answered yet."""

    pool: PoolStatus | None = None
    stats: QueueStats | None = None
    seal: SealStatus | None = None
    duties: Sequence[DutyState] = ()
    problem: str = ""


def concerns(items: Sequence[AttentionItem], conditions: Conditions) -> tuple[Concern, ...]:
    """Conditions first, because they hold for everything; then what is in trouble, the newest danger first."""
    return (*_conditions(conditions), *(_thing(item) for item in items))


def _thing(item: AttentionItem) -> Concern:
    what, style = LOOKS[item.kind]
    more = " (and more)" if item.more else ""
    return Concern(
        f"{item.kind.value}:{item.id}",
        what,
        style,
        f"{item.name}{more}",
        partial(to_thing, item.noun, item.id),
        item.since,
        item.until,
        item.says or "",
    )


def _conditions(known: Conditions) -> Iterator[Concern]:
    if known.problem:
        yield Concern("not-known", "✗ not known", DANGER, "not all could be asked", to_duties, says=known.problem)
    if known.pool is not None and known.pool.pause is not None:
        yield _paused(known.pool.pause)
    if known.pool is not None and known.pool.state == "offline":
        yield Concern("nobody", "○ no agents", DANGER, "nobody is online", partial(to_pane, "agents"))
    for place, words in enumerate(known.stats.warnings if known.stats is not None else ()):
        yield Concern(f"queue-{place}", "! queue", WARNING, "the queue", partial(to_jobs, "waiting"), says=words)
    for words in duty_warnings(known.duties):
        # A duty that stays late tells another number of seconds every time.
        name = next((duty.name for duty in known.duties if f"duty {duty.name} " in words), "all of them")
        yield Concern(f"duty-{name}", "! duty", DANGER, name, to_duties, says=words)
    if known.seal is not None and is_late(known.seal):
        says = f"not sealed for {span(known.seal.lag_seconds)}, acts that wait: {known.seal.unsealed:,}"
        yield Concern("seals", "! seals", WARNING, "the audit trail", partial(to_pane, "audit"), says=says)


def _paused(pause: Pause) -> Concern:
    says = f"{pause.reason} ({pause.by})" if pause.by else pause.reason
    name = f"the queue ({pause.mode.value})"
    return Concern(
        "paused", "‖ paused", "bold $text-warning", name, partial(to_jobs, "waiting"), pause.since, says=says
    )
