"""Why a job is not running: asked for when the detail of one that waits is opened."""

from datetime import datetime

from textual.content import Content

from agent_console.domain.explaining import AbleAgent, AgentGroup, Explanation, Standing
from agent_console.domain.job_acts import WAITING
from agent_console.domain.jobs import Job, JobAsked
from agent_console.domain.spans import ago
from agent_console.repository.operations.explaining import JOBS_EXPLAIN
from agent_console.repository.port import Topic
from agent_console.tui.agent_text import agent_text, system_text
from agent_console.tui.facts import Fact, Listing, Remark, SheetPart
from agent_console.tui.panes.detail_part import DetailPart
from agent_console.tui.widgets.virtual_table_columns import Column

WORDS_SHOWN = 1000
NAMED = 5

STANDING: dict[Standing, tuple[str, str]] = {
    Standing.FREE: ("●", "$text-success"),
    Standing.BUSY: ("◑", "bold"),
    Standing.DRAINED: ("◐", "$text-warning"),
    Standing.IN_ERROR: ("▲", "$text-error"),
    Standing.OFFLINE: ("○", "$foreground-muted"),
    Standing.NOT_ALLOWED: ("-", "$foreground-muted"),
    Standing.REVOKED: ("✗", "$foreground-muted"),
}

COLUMNS = (
    Column("standing", "Standing", 13, min_width=13),
    Column("name", "Name", 20, min_width=8),
    Column("note", "Note", None, min_width=8),
)


def _why(found: Explanation, _job: Job, now: datetime) -> tuple[SheetPart, ...]:
    further = (f"Also: {waits.words}" for waits in found.waits_for[1:])
    return (
        Remark(agent_text(found.summary, "bold", limit=WORDS_SHOWN)),
        *(Remark(agent_text(words, limit=WORDS_SHOWN)) for words in further),
        *(Remark(agent_text(f"! {words}", "$text-warning", limit=WORDS_SHOWN)) for words in found.warnings),
        Fact("lane", agent_text(found.lane, limit=WORDS_SHOWN)),
        *([Fact("ahead of it", system_text(_ahead(found)))] if found.ahead is not None else []),
        *_agents(found, now),
    )


def _ahead(found: Explanation) -> str:
    return f"more than {found.ahead:,}" if found.ahead_capped else f"{found.ahead:,}"


def _agents(found: Explanation, now: datetime) -> tuple[SheetPart, ...]:
    """Whoever could take it, by how they stand; nobody is left out in silence."""
    told: list[SheetPart] = [Fact("could take it", system_text(_counts(found)))]
    for group in found.agents:
        told.append(Listing(COLUMNS, tuple(_agent_row(group, agent, now) for agent in group.agents[:NAMED])))
        left = group.count - min(NAMED, len(group.agents))
        if left > 0 or group.capped:
            words = f"{left:,} more {_word(group)}" if left > 0 and not group.capped else f"more {_word(group)}"
            told.append(Remark(system_text(words, "$foreground-muted")))
    if found.agents_capped:
        told.append(Remark(system_text("There are more agents than were looked at.", "$foreground-muted")))
    return tuple(told)


def _counts(found: Explanation) -> str:
    counts = (f"{group.count:,}{'+' if group.capped else ''} {_word(group)}" for group in found.agents)
    return ", ".join(counts) or "nobody"


def _word(group: AgentGroup) -> str:
    return group.standing.value.replace("_", " ")


def _agent_row(group: AgentGroup, agent: AbleAgent, now: datetime) -> tuple[Content, ...]:
    glyph, style = STANDING[group.standing]
    since = "" if agent.since is None else f"for {ago(agent.since, now)}"
    return (
        system_text(f"{glyph} {_word(group)}", style),
        agent_text(agent.name, limit=100),
        agent_text("  ".join(words for words in (since, agent.note) if words), "$foreground-muted", limit=200),
    )


WHY = DetailPart(
    title="why it is not running",
    # Agents that come and go matter; what other jobs do is looked at only every few seconds.
    topics=frozenset({Topic.AGENTS}),
    own_topics=frozenset({Topic.JOBS}),
    operation=JOBS_EXPLAIN,
    asked=lambda job: JobAsked(job_id=job.id) if job.status in WAITING else None,
    shown=_why,
    nothing="",
)
