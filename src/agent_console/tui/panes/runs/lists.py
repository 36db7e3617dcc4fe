"""Runs: what agents were asked to do in threads, and how it went."""

import json
from dataclasses import replace
from datetime import datetime

from textual.content import Content

from agent_console.domain.agents import Agent
from agent_console.domain.ids import RunId
from agent_console.domain.redact import redact, redact_json
from agent_console.domain.runs import Run, RunAsked, RunQuery, ThreadRunQuery
from agent_console.domain.safe_text import shortened
from agent_console.domain.spans import ago, span, until
from agent_console.domain.states import RunStatus
from agent_console.domain.threads import Thread
from agent_console.repository.operations.runs import RUNS_GET, RUNS_IN_THREAD, RUNS_LIST
from agent_console.repository.port import Topic
from agent_console.tui.agent_text import agent_block, agent_text, system_text
from agent_console.tui.facts import Fact, FactSheet, Heading, Quote, SheetPart
from agent_console.tui.lists.seq_list import SeqList
from agent_console.tui.panes.audit.trails import trail_of
from agent_console.tui.panes.list_kind import ListGroup, ListKind
from agent_console.tui.panes.runs.looks import run_status
from agent_console.tui.panes.runs.screen import RunScreen
from agent_console.tui.widgets.virtual_table_columns import Column

COLUMNS = (
    Column("status", "Status", 12, min_width=12),
    Column("target", "Agent", None, min_width=10),
    Column("by", "Asked by", 14, min_width=8),
    Column("took", "For", 7, align="right"),
    Column("error", "Error", None, min_width=12, drop=1),
    Column("age", "Age", 7, align="right"),
)
GROUPS = (
    ListGroup("all", "all runs"),
    ListGroup("open", "queued and running"),
    ListGroup("failed", "failed and timed out"),
)
STATES: dict[str, tuple[RunStatus, ...]] = {
    "all": (),
    "open": (RunStatus.QUEUED, RunStatus.RUNNING),
    "failed": (RunStatus.FAILED, RunStatus.TIMEOUT),
}
NAME_SHOWN = 40
ERROR_SHOWN = 500
SUMMARY_SHOWN = 8_000


def took(run: Run, now: datetime) -> str:
    """How long it has run, or ran; a dash before it began."""
    if run.started_at is None:
        return "-"
    return span(((run.ended_at or now) - run.started_at).total_seconds())


def run_cells(run: Run, now: datetime) -> tuple[Content, ...]:
    error = redact((run.error_message or run.error_code or "")[:ERROR_SHOWN])
    return (
        run_status(run.shown_status),
        agent_text(run.target or "-", limit=100),
        agent_text(run.requested_by or "-", "$foreground-muted", limit=100),
        system_text(took(run, now)),
        agent_text(error, "$text-error", limit=200),
        system_text(ago(run.created_at, now), "$foreground-muted"),
    )


def run_facts(run: Run, now: datetime) -> FactSheet:
    facts: list[SheetPart] = [
        Heading(agent_text(run.target or str(run.target_agent_id), "bold", limit=255)),
        Fact("id", system_text(str(run.id))),
        Fact("status", run_status(run.shown_status)),
        Fact("ran for", system_text(took(run, now))),
    ]
    if run.error_code is not None:
        facts.append(Fact("error", agent_text(run.error_code, "$text-error", limit=100)))
    if run.error_message:
        said = redact(run.error_message[:2000])
        facts.append(Fact("the agent says", agent_text(said, "$text-error", limit=2000)))
    hops = len(run.delegation_path)
    asked = "a person" if not hops else f"an agent, hop {hops}"
    facts += [
        Fact("asked by", agent_text(run.requested_by or "-", limit=255) + system_text(f"  ({asked})")),
        Fact("asked", system_text(f"{ago(run.created_at, now)} ago")),
        Fact("thread", system_text(str(run.thread_id))),
        Fact("job", system_text(str(run.job_id or "-"))),
    ]
    if run.ended_at is not None:
        facts.append(Fact("ended", system_text(f"{ago(run.ended_at, now)} ago")))
    elif run.deadline_at is not None:
        facts.append(Fact("deadline", system_text(until(run.deadline_at, now))))
    if run.route_version is not None:
        facts.append(Fact("let through", system_text(f"by version {run.route_version} of its route")))
    return FactSheet(tuple(facts))


def run_summary(run: Run, _now: datetime) -> FactSheet:
    if not run.output_summary:
        return FactSheet()
    text = json.dumps(redact_json(dict(run.output_summary)), indent=2, ensure_ascii=False)
    if len(text) > SUMMARY_SHOWN:
        more = f"… {len(text) - SUMMARY_SHOWN:,} characters more (agent-console runs get -o json)"
        text = f"{text[:SUMMARY_SHOWN]}\n{more}"
    return FactSheet(
        (Heading(system_text("what came of it, as the agent says", "bold")), Quote(agent_block(text)))
    )


def run_trail(run: Run) -> ListKind:
    return trail_of("run", run.id, f"the run of {run.target or run.id}", above="runs")


RUNS = ListKind(
    name="runs",
    title="Runs",
    topics=frozenset({Topic.RUNS}),
    columns=COLUMNS,
    newest_first=True,
    list_operation=RUNS_LIST,
    query=lambda group, limit, after: RunQuery(status=STATES[group], limit=limit, after=after),
    get_operation=RUNS_GET,
    asked=lambda row_id: RunAsked(run_id=RunId.parse(row_id)),
    cells=run_cells,
    facts=run_facts,
    origin=run_summary,
    empty="No runs here.\nA run begins when an agent is asked to act in a thread.",
    groups=GROUPS,
    remark=lambda run: f"{run.target or 'an agent'}, asked by {run.requested_by or 'somebody'}",
    below={"trail": run_trail},
    jumps={
        "agents": lambda run: run.target_agent_id,
        "jobs": lambda run: run.job_id,
        "threads": lambda run: run.thread_id,
        "runs": lambda run: run.parent_run_id,
    },
    screen=RunScreen,
    so_far=SeqList[Run],
)


def runs_in(thread: Thread) -> ListKind:
    """The runs of one thread."""
    return replace(
        RUNS,
        name=f"runs-{thread.id}",
        title=f"Runs of {shortened(thread.title or str(thread.id), NAME_SHOWN)}",
        list_operation=RUNS_IN_THREAD,
        query=lambda group, limit, after: ThreadRunQuery(
            thread_id=thread.id, status=STATES[group], limit=limit, after=after
        ),
        empty="Nobody was asked to act in this thread.",
        above="threads",
    )


def runs_by(agent: Agent) -> ListKind:
    """The runs that one agent was asked for."""
    return replace(
        RUNS,
        name=f"runs-{agent.id}",
        title=f"Runs of {shortened(agent.name, NAME_SHOWN)}",
        query=lambda group, limit, after: RunQuery(
            target_agent_id=agent.id, status=STATES[group], limit=limit, after=after
        ),
        empty="It was never asked to act in a thread.",
        above="agents",
    )
