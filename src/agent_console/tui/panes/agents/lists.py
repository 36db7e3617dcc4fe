"""The agent pool."""

from datetime import datetime

from textual.content import Content

from agent_console.domain.agents import Agent, AgentAsked, AgentQuery
from agent_console.domain.ids import AgentId
from agent_console.domain.safe_text import shortened
from agent_console.domain.spans import ago, span
from agent_console.repository.operations import AGENTS_GET, AGENTS_LIST
from agent_console.repository.port import Topic
from agent_console.tui.agent_text import agent_text, system_text
from agent_console.tui.facts import Fact, FactSheet, Heading, SheetPart
from agent_console.tui.looks import agent_status
from agent_console.tui.panes.agents.parts import AGENT_PARTS
from agent_console.tui.panes.audit.trails import trail_of
from agent_console.tui.panes.derived import derived_kind
from agent_console.tui.panes.jobs.lists import NAME_SHOWN, jobs_of
from agent_console.tui.panes.list_kind import ListKind
from agent_console.tui.panes.runs.lists import runs_by
from agent_console.tui.widgets.virtual_table_columns import Column

COLUMNS = (
    Column("status", "Status", 10),
    Column("name", "Name", None, min_width=10),
    Column("jobs", "Jobs", 7, align="right"),
    Column("seen", "Seen", 7, align="right"),
    Column("host", "Host", 14, drop=1),
    Column("version", "Version", 9, drop=3),
    Column("capabilities", "Capabilities", 36, drop=2),
)


def agent_cells(agent: Agent, now: datetime) -> tuple[Content, ...]:
    return (
        agent_status(agent),
        agent_text(agent.name, limit=100),
        system_text(f"{agent.current_jobs}/{agent.max_concurrent_jobs}"),
        system_text(ago(agent.last_heartbeat_at, now), "$foreground-muted"),
        agent_text(agent.hostname or "", "$foreground-muted", limit=60),
        agent_text(agent.version or "", "$foreground-muted", limit=20),
        agent_text(" ".join(agent.capabilities), "$foreground-muted", limit=120),
    )


def load_of(agent: Agent) -> str:
    """Shares as percentages, anything else as the agent sent it."""
    shown = (
        f"{name} {value:.0%}" if isinstance(value, float) and 0 <= value <= 1 else f"{name} {value}"
        for name, value in agent.metrics.items()
    )
    return ", ".join(shown) or "-"


def holdings_of(agent: Agent) -> str:
    jobs = f"{agent.current_jobs} of at most {agent.max_concurrent_jobs} jobs"
    return f"{jobs}, open sessions: {agent.open_sessions}, bound collections: {len(agent.bound_collections)}"


def agent_facts(agent: Agent, now: datetime) -> FactSheet:
    facts: list[SheetPart] = [
        Heading(agent_text(agent.name, "bold", limit=255)),
        Fact("id", system_text(str(agent.id))),
        Fact("status", agent_status(agent)),
    ]
    if agent.error_message:
        facts.append(Fact("the agent says", agent_text(agent.error_message, "$text-error", limit=2000)))
    if agent.revocation_reason:
        facts.append(Fact("revoked", agent_text(agent.revocation_reason, limit=500)))
    if agent.drained_at:
        reason = agent_text(agent.drain_reason or "no reason given", limit=500)
        facts.append(Fact("drained", system_text(f"{ago(agent.drained_at, now)} ago: ") + reason))
    facts += [
        *([Fact("lifecycle", system_text(agent.lifecycle.name.lower()))] if agent.lifecycle else []),
        Fact("last seen", system_text(ago(agent.last_heartbeat_at, now))),
        Fact("up for", system_text("-" if agent.uptime_seconds is None else span(agent.uptime_seconds))),
        Fact("load", agent_text(load_of(agent), limit=300)),
        Fact("holds", system_text(holdings_of(agent))),
        Fact("capabilities", agent_text(", ".join(agent.capabilities) or "-", limit=2000)),
    ]
    return FactSheet(tuple(facts))


def agent_origin(agent: Agent, now: datetime) -> FactSheet:
    return FactSheet(
        (
            Heading(system_text("where it comes from", "bold")),
            Fact("host", agent_text(agent.hostname or "-", limit=255)),
            Fact("system", agent_text(agent.os_info or "-", limit=255)),
            Fact("version", agent_text(agent.version or "-", limit=50)),
            Fact("connectors", system_text(", ".join(map(str, agent.connectors)) or "-")),
            Fact("key", system_text(f"{agent.api_key_prefix}…")),
            Fact("owner", agent_text(agent.owner, limit=300)),
            Fact("registered", agent_text(f"{ago(agent.created_at, now)} ago by {agent.created_by}", limit=300)),
        )
    )


def sessions_of(agent: Agent) -> ListKind:
    title = f"Sessions of {shortened(agent.name, NAME_SHOWN)}"
    return derived_kind("sessions", Topic.SESSIONS, of={"agent_id": str(agent.id)}, title=title, above="agents")


def agent_trail(agent: Agent) -> ListKind:
    return trail_of("agent", agent.id, agent.name, above="agents")


AGENTS = ListKind(
    name="agents",
    title="Agents",
    topics=frozenset({Topic.AGENTS, Topic.JOBS}),
    columns=COLUMNS,
    newest_first=False,
    list_operation=AGENTS_LIST,
    query=lambda group, limit, after: AgentQuery(limit=limit, after=after),
    get_operation=AGENTS_GET,
    asked=lambda row_id: AgentAsked(agent_id=AgentId.parse(row_id)),
    cells=agent_cells,
    facts=agent_facts,
    origin=agent_origin,
    parts=AGENT_PARTS,
    below={"jobs": jobs_of, "sessions": sessions_of, "runs": runs_by, "trail": agent_trail},
    empty="No agents yet.\nAn administrator mints a registration token;\nan agent registers with it.",
)
