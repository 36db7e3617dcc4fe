"""GET /metrics: how the queue, the pool and this process do, in the text format that Prometheus reads.

Only a person's credential opens it, and it tells of that person's team. There is no way in for whoever comes from
this machine: behind a proxy on the same machine, that is everybody.
"""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from fastapi import FastAPI, Request, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from agent_console.domain.agents import PoolStatus
from agent_console.domain.duties import DutyState
from agent_console.domain.queue_stats import QueueStats
from agent_console.domain.records import Nothing
from agent_console.repository.operations import ME, POOL_STATUS
from agent_console.repository.operations.duties import DUTIES_LIST
from agent_console.repository.operations.explaining import QUEUE_STATS
from agent_console.repository.postgres.duties.records import Records
from agent_console.server.credentials import CallerRepository
from agent_console.server.failures import ERROR_RESPONSES

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
STREAM_PATHS = ("/v1/changes", "/v1/stream")

Labels = Mapping[str, str]
_ESCAPED = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})


@dataclass
class Family:
    """One metric with all its samples. A counter's name ends in _total, seconds are its unit throughout."""

    name: str
    kind: Literal["gauge", "counter", "summary"]
    help: str
    samples: list[tuple[str, Labels, float]] = field(default_factory=list)

    def add(self, value: float, suffix: str = "", **labels: str) -> "Family":
        self.samples.append((suffix, labels, value))
        return self

    def text(self) -> str:
        told = self.help.replace("\\", r"\\").replace("\n", r"\n")
        lines = [f"# HELP {self.name} {told}", f"# TYPE {self.name} {self.kind}"]
        lines += [f"{self.name}{suffix}{_shown(labels)} {value!r}" for suffix, labels, value in self.samples]
        return "".join(f"{line}\n" for line in lines)


def _shown(labels: Labels) -> str:
    pairs = (f'{name}="{value.translate(_ESCAPED)}"' for name, value in labels.items())
    return f"{{{','.join(pairs)}}}" if labels else ""


def queue_families(stats: QueueStats, team: str) -> list[Family]:
    jobs = Family("agent_console_jobs", "gauge", "Jobs in each state.")
    for depth in stats.by_status:
        jobs.add(depth.jobs, team=team, status=depth.status.value)
    types = Family("agent_console_jobs_by_type", "gauge", "Jobs of each type, those with most waiting.")
    for kind in stats.by_type:
        for state, count in (("waiting", kind.waiting), ("held", kind.held), ("ended", kind.ended)):
            types.add(count, team=team, type=kind.type, state=state)
    totals = stats.totals
    wait = Family("agent_console_claim_wait_seconds", "summary", "How long claimed jobs had been ready.")
    wait.add(totals.claim_wait_seconds, "_sum", team=team).add(totals.claims, "_count", team=team)
    counted = (
        ("jobs_created", "Jobs put into the queue.", totals.created),
        ("claims", "Jobs taken by agents.", totals.claims),
        ("completions", "Jobs that succeeded.", totals.completions),
        ("failures", "Jobs that failed for good.", totals.failures),
        ("retries", "Jobs given back to the queue for another try.", totals.retries),
        ("dead_letters", "Jobs given up after their last try.", totals.dead_letters),
        ("cancellations", "Jobs that were cancelled.", totals.cancellations),
        ("lease_losses", "Leases that ran out while an agent held the job.", totals.lease_losses),
    )
    counters = [
        Family(f"agent_console_{name}_total", "counter", told).add(total, team=team)
        for name, told, total in counted
    ]
    oldest = Family("agent_console_oldest_queued_seconds", "gauge", "Age of the oldest queued job, 0 without one.")
    return [jobs, types, oldest.add(stats.oldest_queued_seconds or 0.0, team=team), *counters, wait]


def database_families(stats: QueueStats) -> list[Family]:
    return [
        Family(
            "agent_console_database_oldest_transaction_seconds",
            "gauge",
            "Age of the oldest open transaction that the server may see; others need pg_read_all_stats.",
        ).add(stats.oldest_transaction_seconds or 0.0),
        Family(
            "agent_console_database_oldest_snapshot_transactions",
            "gauge",
            "How many transactions ago the oldest open snapshot was taken, whoever holds it.",
        ).add(stats.oldest_snapshot_transactions),
    ]


def pool_family(pool: PoolStatus, team: str) -> Family:
    agents = Family("agent_console_agents", "gauge", "Agents by presence; never seen counts as offline.")
    counts = {"online": pool.online_count, "offline": pool.offline_count, "error": pool.error_count}
    for presence, count in counts.items():
        agents.add(count, team=team, presence=presence)
    return agents


def duty_families(records: Records, states: Iterable[DutyState]) -> list[Family]:
    """What this process did, which adds up over all of them; and when somebody did it, which all tell alike."""
    rounds = Family("agent_console_duty_rounds_total", "counter", "Rounds of a duty in this process.")
    failures = Family("agent_console_duty_failures_total", "counter", "Rounds of a duty here that failed.")
    rows = Family("agent_console_duty_rows_total", "counter", "Rows that a duty changed in this process.")
    for name, record in records.items():
        rounds.add(record.rounds, duty=name)
        failures.add(record.failures, duty=name)
        rows.add(record.rows, duty=name)
    last = Family(
        "agent_console_duty_last_run_timestamp_seconds", "gauge", "When any process last did a duty, 0 if never."
    )
    late = Family("agent_console_duty_late", "gauge", "1 when nobody has done a duty for too long.")
    for state in states:
        last.add(0.0 if state.done_at is None else state.done_at.timestamp(), duty=state.name)
        late.add(float(state.late), duty=state.name)
    return [rounds, failures, rows, last, late]


class OpenStreams:
    """Counts the live streams that are open just now."""

    def __init__(self, app: ASGIApp, counts: dict[str, int]) -> None:
        self.app = app
        self.counts = counts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] not in STREAM_PATHS:
            await self.app(scope, receive, send)
            return
        self.counts["open"] += 1
        try:
            await self.app(scope, receive, send)
        finally:
            self.counts["open"] -= 1


def add_metrics(app: FastAPI) -> None:
    """`app.state.duties` holds the records of the duties that this process does, once it does any."""
    streams = {"open": 0}
    started = time.time()
    app.state.duties = {}
    app.add_middleware(OpenStreams, counts=streams)

    @app.get(
        "/metrics",
        name="metrics",
        operation_id="metrics",
        summary="Queue, pool and process for Prometheus.",
        tags=["health"],
        response_class=Response,
        responses=ERROR_RESPONSES | {200: {"content": {"text/plain": {}}}},
    )
    async def metrics(request: Request, repository: CallerRepository) -> Response:
        # Asked first: whoever may not see the fleet is told so by it.
        pool = await repository.call(POOL_STATUS, Nothing())
        stats = await repository.call(QUEUE_STATS, Nothing())
        duties = await repository.call(DUTIES_LIST, Nothing())
        team = (await repository.call(ME, Nothing())).team
        families = [
            *queue_families(stats, team),
            pool_family(pool, team),
            *database_families(stats),
            *duty_families(request.app.state.duties, duties.items),
            Family("agent_console_open_streams", "gauge", "Live streams open in this process.").add(
                streams["open"]
            ),
            Family("process_start_time_seconds", "gauge", "When this server started.").add(started),
        ]
        body = "".join(family.text() for family in families if family.samples)
        return Response(body, media_type=MEDIA_TYPE)
