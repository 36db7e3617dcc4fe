"""The job queue."""

import json
from dataclasses import replace
from datetime import datetime

from textual.content import Content

from agent_console.domain.agents import Agent
from agent_console.domain.ids import JobId
from agent_console.domain.jobs import Job, JobAsked, JobQuery
from agent_console.domain.redact import redact, redact_json
from agent_console.domain.safe_text import shortened
from agent_console.domain.spans import ago, span, until
from agent_console.domain.states import JobStatus
from agent_console.repository.operations import JOBS_GET, JOBS_LIST
from agent_console.repository.port import Topic
from agent_console.tui.agent_text import agent_block, agent_text, system_text
from agent_console.tui.facts import Fact, FactSheet, Heading, Quote, SheetPart
from agent_console.tui.looks import job_status, progress_bar
from agent_console.tui.panes.audit.trails import trail_of
from agent_console.tui.panes.jobs.screen import JobScreen
from agent_console.tui.panes.jobs.story import STORY
from agent_console.tui.panes.jobs.why import WHY
from agent_console.tui.panes.list_kind import ListGroup, ListKind
from agent_console.tui.widgets.virtual_table_columns import Column

# On 80 columns priorities give way, so that why a job failed can be read without opening it.
COLUMNS = (
    Column("status", "Status", 13, min_width=13),
    Column("type", "Type", None, min_width=11, narrow_to=8),
    Column("agent", "Agent", 12, min_width=8),
    Column("progress", "Progress or reason", None, min_width=24, narrow_to=10),
    Column("try", "Try", 4, align="right", drop=1),
    Column("prio", "Prio", 4, align="right", drop=2),
    Column("age", "Age", 7, align="right"),
)

GROUPS = (
    ListGroup("all", "all jobs"),
    ListGroup("waiting", "waiting"),
    ListGroup("held", "assigned and running"),
    ListGroup("failed", "failed and dead letters"),
    ListGroup("done", "succeeded and cancelled"),
)

STATES: dict[str, tuple[JobStatus, ...]] = {
    "all": (),
    "waiting": (JobStatus.QUEUED, JobStatus.SCHEDULED),
    "held": (JobStatus.ASSIGNED, JobStatus.RUNNING),
    "failed": (JobStatus.FAILED, JobStatus.DEAD_LETTER),
    "done": (JobStatus.SUCCEEDED, JobStatus.CANCELLED),
}

FAILED = frozenset(STATES["failed"])
PAYLOAD_SHOWN = 8000
NAME_SHOWN = 40
LEASE_SHOWN_SECONDS = 60.0


def _percentage(job: Job) -> float | None:
    value = (job.progress or {}).get("percentage")
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def lease_news(job: Job, now: datetime) -> Content:
    """A countdown, once an agent is about to lose the job. One that is well never lets it come so far."""
    if job.lease_expires_at is None or job.finished_at is not None:
        return system_text("")
    left = (job.lease_expires_at - now).total_seconds()
    if left > LEASE_SHOWN_SECONDS:
        return system_text("")
    return system_text(f"lease {span(left)} " if left > 0 else "lease over ", "$text-warning")


def job_news(job: Job, now: datetime) -> Content:
    """How far it is; when it may be claimed; how it ended."""
    percentage = _percentage(job)
    lease = lease_news(job, now)
    if percentage is not None and job.finished_at is None:
        stage = (job.progress or {}).get("stage")
        words = agent_text(stage, "$foreground-muted", limit=60) if isinstance(stage, str) else system_text("")
        return (system_text(f"{progress_bar(percentage)} ") + lease + words).rstrip()
    due = system_text(until(job.due_at, now), "$foreground-muted")
    style = "$text-error" if job.status in FAILED else "$foreground-muted"
    said = agent_text(redact((job.error_message or job.result_summary or "")[:500]), style, limit=200)
    return lease + (due + system_text(": ", "$foreground-muted") + said if due and said else due + said)


def job_cells(job: Job, now: datetime) -> tuple[Content, ...]:
    return (
        job_status(job),
        agent_text(job.type, limit=100),
        agent_text(job.agent_name or "", "$foreground-muted", limit=100),
        job_news(job, now),
        system_text(f"{job.attempt}/{job.max_attempts}"),
        system_text(str(job.priority), "" if job.priority else "$foreground-muted"),
        system_text(ago(job.created_at, now), "$foreground-muted"),
    )


def lease_text(ends_at: datetime, now: datetime) -> str:
    return f"ends {until(ends_at, now)}" if ends_at > now else f"ran out {ago(ends_at, now)} ago"


def job_facts(job: Job, now: datetime) -> FactSheet:
    facts: list[SheetPart] = [
        Heading(agent_text(job.type, "bold", limit=100)),
        Fact("id", system_text(str(job.id))),
        Fact("status", job_status(job)),
    ]
    percentage = _percentage(job)
    if percentage is not None:
        facts.append(Fact("progress", system_text(progress_bar(percentage))))
        stage = (job.progress or {}).get("stage")
        if isinstance(stage, str):
            facts.append(Fact("stage", agent_text(stage, limit=200)))
    if job.error_message:
        facts.append(
            Fact("the agent says", agent_text(redact(job.error_message[:2000]), "$text-error", limit=2000))
        )
    if job.result_summary:
        facts.append(Fact("result", agent_text(redact(job.result_summary[:2000]), limit=2000)))
    if job.agent_id is not None:
        facts.append(Fact("agent", agent_text(job.agent_name or str(job.agent_id), limit=255)))
    if job.bound_agent_id is not None:
        is_same = job.bound_agent_id == job.agent_id and job.agent_name is not None
        facts.append(Fact("bound to", system_text("this agent" if is_same else str(job.bound_agent_id))))
    if job.due_at is not None:
        facts.append(Fact("due", system_text(until(job.due_at, now) if job.due_at > now else "now")))
    if job.lease_expires_at is not None:
        facts.append(Fact("lease", system_text(lease_text(job.lease_expires_at, now))))
    needs = ", ".join(job.required_capabilities)
    facts += [
        Fact("needs", agent_text(needs or "nothing special", limit=2000)),
        Fact("try", system_text(f"{job.attempt} of {job.max_attempts}")),
        Fact("priority", system_text(str(job.priority))),
        Fact("tool", agent_text(job.tool or "-", limit=100)),
        Fact("created", agent_text(f"{ago(job.created_at, now)} ago by {job.created_by or '-'}", limit=300)),
    ]
    if job.started_at is not None:
        facts.append(Fact("started", system_text(f"{ago(job.started_at, now)} ago")))
    if job.finished_at is not None:
        facts.append(Fact("ended", system_text(f"{ago(job.finished_at, now)} ago")))
    return FactSheet(tuple(facts))


def job_payload(job: Job, _now: datetime) -> FactSheet:
    text = json.dumps(redact_json(dict(job.payload)), indent=2, ensure_ascii=False)
    if len(text) > PAYLOAD_SHOWN:
        more = f"… {len(text) - PAYLOAD_SHOWN:,} characters more (agent-console jobs get -o json)"
        text = f"{text[:PAYLOAD_SHOWN]}\n{more}"
    return FactSheet((Heading(system_text("payload, as given", "bold")), Quote(agent_block(text))))


def job_trail(job: Job) -> ListKind:
    return trail_of("job", job.id, job.type, above="jobs")


JOBS = ListKind(
    name="jobs",
    title="Jobs",
    topics=frozenset({Topic.JOBS}),
    columns=COLUMNS,
    newest_first=True,
    list_operation=JOBS_LIST,
    query=lambda group, limit, after: JobQuery(status=STATES[group], limit=limit, after=after),
    get_operation=JOBS_GET,
    asked=lambda row_id: JobAsked(job_id=JobId.parse(row_id)),
    cells=job_cells,
    facts=job_facts,
    origin=job_payload,
    parts=(WHY, STORY),
    empty="No jobs here.\nPut one into the queue: agent-console jobs create --help",
    groups=GROUPS,
    whole=": new ones, all that match, and the queue itself (pause, resume)",
    jumps={"agents": lambda job: job.agent_id, "runs": lambda job: job.run_id},
    below={"trail": job_trail},
    screen=JobScreen,
)


def jobs_of(agent: Agent) -> ListKind:
    """The jobs that one agent has or had."""
    return replace(
        JOBS,
        name=f"jobs-{agent.id}",
        title=f"Jobs of {shortened(agent.name, NAME_SHOWN)}",
        query=lambda group, limit, after: JobQuery(
            agent_id=agent.id, status=STATES[group], limit=limit, after=after
        ),
        empty="It has none of these.",
        above="agents",
    )
