"""The fleet proof: 200 real agents against one real server for ten minutes; whatever is lost is exit code 1.

    python -m bench.fleet

The agents live in eight processes and speak HTTP. 17 jobs come every second: reports with progress and lines, work
of different length, mails, one that fails at its first try, and one that asks another agent, for half of which a
person has to approve. That person is a script, which says no to every tenth. After a quarter of the time the
server is killed and started again, after two fifths a process of agents is. At the end every job has to have ended
as planned, no lease may have been lost but by those who were killed, every act has to be sealed, no duty may be
late, and the memory of the server and of the agents has to be what it was in the middle.
"""

import asyncio
import os
import statistics
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from textwrap import fill

import psycopg
from bench.faults_report import WIDTH, InAll, write_part
from bench.fleet_stage import AGENTS, Fleet, Processes, settled, staged
from bench.stopping import ends_when_told

from agent_console.domain.approvals import ApprovalQuery, Approving, Rejecting
from agent_console.domain.errors import ConsoleError
from agent_console.domain.ids import JobId
from agent_console.domain.jobs import NewJob
from agent_console.domain.many_jobs import NewJobs
from agent_console.domain.records import Nothing
from agent_console.repository.http.repository import HttpRepository
from agent_console.repository.operations.approvals import APPROVALS_APPROVE, APPROVALS_LIST, APPROVALS_REJECT
from agent_console.repository.operations.duties import DUTIES_LIST
from agent_console.repository.operations.enqueueing import JOBS_CREATE_MANY

SECONDS = float(os.environ.get("BENCH_SECONDS", "600"))
EVERY_SECOND = ("ask", "flaky", *("report",) * 3, *("index",) * 6, *("mail",) * 6)
JOBS_A_MINUTE = 1_000
REJECTED_EVERY = 10
SERVER_KILLED_AT, AGENTS_KILLED_AT = 0.25, 0.4
KILLED = 0
DRAIN_SECONDS = 180.0
GROWTH_LIMIT = 1.1
GROWTH_MEGABYTES = 5.0
LOOK_SECONDS = 2.0

# A job that was refused by a person fails, as planned; everything else succeeds, once.
ENDED = """
    select j.type, j.status, coalesce(j.error_code, ''), count(*)
      from jobs j where j.id = any(%s) group by 1, 2, 3 order by 1, 2, 3
"""
UNFINISHED = "select count(*) from jobs where finished_at is null"
ENDED_TWICE = """
    select count(*)
      from (select job_id from job_events where payload ->> 'to' in ('succeeded', 'failed')
             group by job_id having count(*) > 1) as twice
"""
# With the moment of the claim: an answer that a killed server no longer gave leaves a job with nobody.
LEASES_LOST = """
    select coalesce(lost.payload ->> 'claimed_by', ''), claimed.at, lost.created_at
      from job_events lost
     cross join lateral (
           select max(e.created_at) as at from job_events e
            where e.team_id = lost.team_id and e.job_id = lost.job_id and e.created_at < lost.created_at
              and e.message like 'queued to assigned%') as claimed
     where lost.message like '%lease expired%'
"""
ANSWER_TIME = timedelta(seconds=2)
WAITS = """
    select extract(epoch from assigned_at - created_at)::float8 from jobs
     where attempt = 1 and assigned_at is not null and run_id is null
"""
DECIDED = "select state, count(*) from approvals group by state"
# The routes were made last before the agents were started.
HEARD = "select count(*) from agent_runtime where last_heartbeat_at > (select max(created_at) from a2a_routes)"
UNSEALED = "select (select count(*) from audit_log) - (select count(*) from audit_seals)"


@dataclass
class Story:
    """What happened meanwhile."""

    seconds: float
    created: list[JobId] = field(default_factory=list)
    decided: int = 0
    memory: list[tuple[float, float, float]] = field(default_factory=list)
    server_away: list[tuple[datetime, datetime]] = field(default_factory=list)


Disturbing = Callable[[Processes, Story, float], Awaitable[None]]


async def insisted(ask: Callable[[], Awaitable[object]]) -> None:
    """However often the server is away."""
    while True:
        try:
            await ask()
        except ConsoleError as error:
            if error.status < 500:
                raise
            await asyncio.sleep(0.5)
        else:
            return


async def create(creator: HttpRepository, story: Story, jobs: NewJobs) -> None:
    story.created += (await creator.call(JOBS_CREATE_MANY, jobs)).ids


async def feed(fleet: Fleet, story: Story, began: float) -> None:
    """The same key again is the same job: what was asked for while the server died is asked for again."""
    async with HttpRepository(fleet.address, fleet.creator) as creator:
        for second in range(int(story.seconds)):
            await asyncio.sleep(max(0.0, began + second - time.monotonic()))
            if time.monotonic() > began + story.seconds:
                # The server did not keep up: that is told, and not made up for while nobody watches.
                return
            jobs = tuple(
                NewJob(type=kind, payload={"second": second}, idempotency_key=f"{second}:{place}")
                for place, kind in enumerate(EVERY_SECOND)
            )

            await insisted(partial(create, creator, story, NewJobs(jobs=jobs)))


async def decide(fleet: Fleet, story: Story) -> None:
    async with HttpRepository(fleet.address, fleet.decider) as person:

        async def decide_all() -> None:
            for waiting in (await person.call(APPROVALS_LIST, ApprovalQuery())).items:
                story.decided += 1
                if story.decided % REJECTED_EVERY:
                    yes = Approving(approval_id=waiting.id, digest_seen=waiting.digest)
                    await person.call(APPROVALS_APPROVE, yes)
                else:
                    no = Rejecting(approval_id=waiting.id, digest_seen=waiting.digest, reason="not today")
                    await person.call(APPROVALS_REJECT, no)

        while True:
            await insisted(decide_all)
            await asyncio.sleep(0.5)


async def watch(processes: Processes, story: Story, began: float) -> None:
    while True:
        story.memory.append((time.monotonic() - began, processes.server_megabytes(), processes.agents_megabytes()))
        await asyncio.sleep(LOOK_SECONDS)


async def disturb(processes: Processes, story: Story, began: float) -> None:
    await asyncio.sleep(max(0.0, began + SERVER_KILLED_AT * story.seconds - time.monotonic()))
    await server_is_killed(processes, story)
    print(f"{time.monotonic() - began:>5.0f} s  the server was killed and started again", flush=True)
    await asyncio.sleep(max(0.0, began + AGENTS_KILLED_AT * story.seconds - time.monotonic()))
    await asyncio.to_thread(processes.kill_agents, KILLED)
    print(f"{time.monotonic() - began:>5.0f} s  a process of agents was killed and started again", flush=True)


async def server_is_killed(processes: Processes, story: Story) -> None:
    began = now()
    await asyncio.to_thread(processes.kill_server)
    story.server_away.append((began, now()))


def now() -> datetime:
    """On the machine of the database, whose clock tells when a job was claimed."""
    return datetime.now(UTC)


async def drained(fleet: Fleet) -> float:
    """How long it took until nothing was left to do, and to seal."""
    began = time.monotonic()
    while time.monotonic() - began < DRAIN_SECONDS:
        if all([fleet.number(UNFINISHED) == 0, fleet.number(UNSEALED) == 0]):
            break
        await asyncio.sleep(0.5)
    return time.monotonic() - began


async def assembled(fleet: Fleet) -> None:
    """Everybody has come: what starting so many programs costs is no part of the proof."""
    began = time.monotonic()
    while fleet.number(HEARD) < AGENTS:
        assert time.monotonic() - began < DRAIN_SECONDS, "the agents did not come"
        await asyncio.sleep(0.5)
    print(f"      {AGENTS} agents are there, after {time.monotonic() - began:.0f} s", flush=True)


async def lived(
    fleet: Fleet, processes: Processes, seconds: float = SECONDS, disturbing: Disturbing = disturb
) -> tuple[Story, float, list[str]]:
    await assembled(fleet)
    story, began = Story(seconds), time.monotonic()
    deciding = asyncio.create_task(decide(fleet, story))
    watching = asyncio.create_task(watch(processes, story, began))
    await asyncio.gather(feed(fleet, story, began), disturbing(processes, story, began))
    drain_seconds = await drained(fleet)
    for task in (deciding, watching):
        task.cancel()
    await asyncio.gather(deciding, watching, return_exceptions=True)
    late: list[str] = []
    async with HttpRepository(fleet.address, fleet.creator) as person:

        async def look() -> None:
            late[:] = [duty.name for duty in (await person.call(DUTIES_LIST, Nothing())).items if duty.late]

        await insisted(look)
    return story, drain_seconds, late


def grown(samples: list[float]) -> bool:
    """Whether the last third of them lies above the first."""
    third = max(1, len(samples) // 3)
    first, last = statistics.median(samples[:third]), statistics.median(samples[-third:])
    return last > max(first * GROWTH_LIMIT, first + GROWTH_MEGABYTES)


def was_unanswered(story: Story, claimed_at: datetime) -> bool:
    """Claimed before the server could say so, or by the database after the server that had asked it was gone."""
    return any(began - ANSWER_TIME <= claimed_at <= ended for began, ended in story.server_away)


def was_killed(fleet: Fleet, name: str, claimed_at: datetime, lost_at: datetime) -> bool:
    """Between the claim, or while it was being answered, and the end of the lease."""
    return any(claimed_at - ANSWER_TIME <= killed_at <= lost_at for killed_at in fleet.killed.get(name, ()))


def told(fleet: Fleet, story: Story, drain_seconds: float, late: list[str]) -> tuple[str, list[str]]:
    """Prints the table; the figures in words, and what is wrong."""
    with psycopg.connect(fleet.dsn, autocommit=True) as connection:
        ended = connection.execute(ENDED, (story.created,)).fetchall()
        waits = sorted(float(wait) for (wait,) in connection.execute(WAITS).fetchall())
        lost: list[tuple[str, datetime, datetime]] = connection.execute(LEASES_LOST).fetchall()
        decided: Counter[str] = Counter(dict(connection.execute(DECIDED).fetchall()))
    print(f"\n{'type':<10}{'ended as':<24}{'jobs':>8}")
    for kind, status, code, count in ended:
        print(f"{kind:<10}{f'{status} {code}':<24}{count:>8,}")
    counts = Counter({(kind, status): count for kind, status, _, count in ended})
    planned = Counter(EVERY_SECOND)
    seconds = len(story.created) // len(EVERY_SECOND)
    by_others = [
        claimed_at for name, claimed_at, lost_at in lost if not was_killed(fleet, name, claimed_at, lost_at)
    ]
    unanswered = sum(was_unanswered(story, claimed_at) for claimed_at in by_others)
    by_killed, without_fault = len(lost) - len(by_others), len(by_others) - unanswered
    memory = [sample for sample in story.memory if 0.5 * story.seconds <= sample[0] <= story.seconds]
    p50, p99 = (1000 * waits[int(share * len(waits))] for share in (0.5, 0.99))
    summary = (
        f"{len(story.created):,} jobs in {story.seconds:.0f} s"
        f" ({len(story.created) / story.seconds * 60:,.0f} a minute),"
        f" {decided['approved']} delegations approved, {decided['rejected']} rejected;"
        f" waited for an agent: p50 {p50:.0f} ms, p99 {p99:.0f} ms;"
        f" all done and sealed {drain_seconds:.0f} s after the last;"
        f" leases lost: {by_killed} by killed agents, {unanswered} in claims whose answer died with the server,"
        f" {without_fault} without a fault."
    )
    print("\n" + summary.replace("; ", "\n"))
    for name, place in (("server", 1), ("agents", 2)):
        middle, end = memory[0][place], memory[-1][place]
        print(f"memory of the {name}: {middle:.0f} MB in the middle, {end:.0f} MB at the end")
    asked = counts["ask", "succeeded"] + counts["ask", "failed"]
    wrong = {
        "fewer jobs than planned": len(story.created) < JOBS_A_MINUTE * story.seconds / 60,
        "jobs that were not kept": sum(row[3] for row in ended) != len(set(story.created)),
        "jobs that did not end": fleet.number(UNFINISHED) > 0,
        "jobs that ended twice": fleet.number(ENDED_TWICE) > 0,
        "jobs that failed": any(
            counts[kind, "succeeded"] != planned[kind] * seconds for kind in planned if kind != "ask"
        ),
        "questions that were lost": asked != planned["ask"] * seconds,
        "questions that failed": counts["ask", "failed"] != decided["rejected"],
        "leases lost without a fault": without_fault > 0,
        "acts without a seal": fleet.number(UNSEALED) > 0,
        f"duties that are late: {', '.join(late)}": bool(late),
        "the server's memory grew": grown([sample[1] for sample in memory]),
        "the agents' memory grew": grown([sample[2] for sample in memory]),
    }
    return summary, [sentence for sentence, is_so in wrong.items() if is_so]


def main() -> int:
    with staged() as dsn, settled(dsn) as (fleet, processes):
        story, drain_seconds, late = asyncio.run(lived(fleet, processes))
        summary, problems = told(fleet, story, drain_seconds, late)
    print("\nnothing was lost" if not problems else "\n" + "\n".join(f"WRONG: {problem}" for problem in problems))
    if "--no-report" not in sys.argv:
        wrong = f"Lost or wrong: {'; '.join(problems) or '0'}."
        text = f"{fill(summary, WIDTH)}\n\n{wrong}\n\nAgain: `python -m bench.fleet`"
        in_all = InAll(
            f"jobs through {AGENTS} agents and a server that is killed", len(story.created), len(problems)
        )
        write_part("fleet", "A fleet at work", text, in_all)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(ends_when_told(main))
