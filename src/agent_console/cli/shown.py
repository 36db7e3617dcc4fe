"""Which columns the command line shows of an answer."""

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, get_args

from pydantic import BaseModel

from agent_console.cli.output import OutputForm, TableColumn, emit, emit_one
from agent_console.domain.agents import Agent
from agent_console.domain.jobs import Job, QueueDepth, StatusDepth
from agent_console.domain.records import Page, Record
from agent_console.domain.runs import Trace, TraceKind, TraceRow
from agent_console.domain.spans import ago, span, until


def _now() -> datetime:
    return datetime.now(UTC)


AGENT_COLUMNS: Sequence[TableColumn[Agent]] = (
    TableColumn("id", lambda agent: str(agent.id)),
    TableColumn("name", lambda agent: agent.name),
    TableColumn("status", lambda agent: agent.status.value + (" drained" if agent.drained_at else "")),
    TableColumn("jobs", lambda agent: f"{agent.current_jobs}/{agent.max_concurrent_jobs}", "right"),
    TableColumn("seen", lambda agent: ago(agent.last_heartbeat_at, _now()), "right"),
    TableColumn("host", lambda agent: agent.hostname or ""),
    TableColumn("capabilities", lambda agent: " ".join(agent.capabilities)),
)

JOB_COLUMNS: Sequence[TableColumn[Job]] = (
    TableColumn("id", lambda job: str(job.id)),
    TableColumn("type", lambda job: job.type),
    TableColumn("status", lambda job: job.shown_status),
    TableColumn("prio", lambda job: str(job.priority), "right"),
    TableColumn("try", lambda job: f"{job.attempt}/{job.max_attempts}", "right"),
    TableColumn("agent", lambda job: job.agent_name or ""),
    TableColumn("age", lambda job: ago(job.created_at, _now()), "right"),
    TableColumn(
        "due", lambda job: until(job.scheduled_for if job.status == "scheduled" else None, _now()), "right"
    ),
    TableColumn("note", lambda job: job.error_message or job.result_summary or ""),
)

DEPTH_COLUMNS: Sequence[TableColumn[StatusDepth]] = (
    TableColumn("status", lambda depth: depth.status.value),
    TableColumn("jobs", lambda depth: f"> {depth.count:,}" if depth.capped else f"{depth.count:,}", "right"),
)


TRACE_COLUMNS: Sequence[TableColumn[TraceRow]] = (
    TableColumn(
        "agent", lambda row: f"{'  ' * (row.depth - 1)}{'└ ' if row.depth else ''}{row.agent or row.agent_id}"
    ),
    TableColumn("status", lambda row: row.status if row.kind is TraceKind.RUN else f"approval {row.status}"),
    TableColumn("for", lambda row: "-" if row.seconds is None else span(row.seconds), "right"),
    TableColumn("id", lambda row: str(row.run_id or row.approval_id)),
)

# What reads better than its fields one by one.
COLUMNS: dict[type[BaseModel], Sequence[TableColumn[Any]]] = {Agent: AGENT_COLUMNS, Job: JOB_COLUMNS}


def print_answer(answer: BaseModel, form: OutputForm) -> None:
    match answer:
        case Page(items=items, next=following):
            emit(items, _columns_of(type(answer)), form, next_page=following)
        case QueueDepth() if form is OutputForm.TABLE:
            emit(answer.depths, DEPTH_COLUMNS, form)
        case Trace() if form is OutputForm.TABLE:
            emit(answer.items, TRACE_COLUMNS, form)
        case _:
            emit_one(answer, _fields(type(answer), type(answer).model_fields), form)


def _columns_of(page: type[BaseModel]) -> Sequence[TableColumn[Any]]:
    """The columns of what a page holds, also when it holds nothing."""
    kind: type[Record] = get_args(page.model_fields["items"].annotation)[0]
    return COLUMNS.get(kind) or _fields(kind, kind.columns or kind.model_fields)


def _fields(model: type[BaseModel], names: Iterable[str]) -> tuple[TableColumn[BaseModel], ...]:
    """Fields as the JSON has them."""

    def column(name: str) -> TableColumn[BaseModel]:
        return TableColumn(name.replace("_", " "), lambda row: _plain(row.model_dump(mode="json")[name]))

    return tuple(column(name) for name in names)


def _plain(value: object) -> str:
    match value:
        case None:
            return "-"
        case str():
            return value
        case bool():
            return "yes" if value else "no"
        case list() if all(isinstance(item, str) for item in value):
            return " ".join(value) or "-"
        case list() | dict():
            return json.dumps(value, indent=2, ensure_ascii=False)
        case _:
            return str(value)
