"""Why a job is not running, and what to warn of when one is made that nobody could take."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row, text

from agent_console.domain.explaining import (
    AHEAD_CAP,
    Explanation,
    Holding,
    Obstacle,
    Outcome,
    Standing,
    WaitsFor,
)
from agent_console.domain.ids import JobId
from agent_console.domain.jobs import JobAsked
from agent_console.domain.kinds import CredentialLocation
from agent_console.domain.lane_words import NAME_SHOWN, lane_words
from agent_console.domain.lanes import Lane
from agent_console.domain.redact import redact
from agent_console.domain.safe_text import shortened
from agent_console.domain.spans import ago, span
from agent_console.domain.states import JOB_FINAL, JOB_HELD, JobStatus
from agent_console.domain.why_waiting import (
    NOTE_SHOWN,
    bound_words,
    busy_words,
    coming,
    connector_words,
    group_of,
    nobody_words,
    old_transaction_words,
    paused_words,
    since,
    turn_words,
)
from agent_console.repository.operations.explaining import JOBS_EXPLAIN
from agent_console.repository.postgres.old_transactions import oldest_transaction
from agent_console.repository.postgres.queue.able_agents import (
    AbleAgents,
    able_agents,
    somebody_living,
    unmet_by_all,
)
from agent_console.repository.postgres.queue.job_changes import no_job
from agent_console.repository.postgres.queue.lanes import lane_from
from agent_console.repository.postgres.work import Work, answers

# Whoever does the duties looks at due jobs every half second; after this long nobody does.
UNTENDED_SECONDS = 30

# Everything by key.
FACTS = text("""
    select j.id, j.status, j.priority, j.attempt, j.max_attempts, j.scheduled_for, j.next_attempt_at,
           j.look_at = '-infinity' as claimable,
           case when j.look_at > '-infinity' then j.look_at end as look_at,
           j.agent_id, holder.name as agent_name, j.claimed_by, j.assigned_at, j.started_at, j.lease_expires_at,
           j.finished_at, j.error_message, j.result_summary,
           j.cancel_requested_at, j.cancel_reason, canceller.full_name as cancelled_by,
           l.id as lane_id, l.bound_agent_id, l.required_capabilities, l.job_type, l.repository, l.connector_id,
           bound.name as bound_to, c.name as connector, c.credential_location,
           t.pause_mode, t.pause_reason, t.paused_at, pauser.full_name as paused_by,
           now() as at
      from jobs j
      join lanes l on l.team_id = j.team_id and l.id = j.lane_id
      join teams t on t.id = j.team_id
      left join connectors c on c.team_id = j.team_id and c.id = l.connector_id
      left join agents bound on bound.team_id = j.team_id and bound.id = l.bound_agent_id
      left join agents holder on holder.team_id = j.team_id and holder.id = j.agent_id
      left join users pauser on pauser.team_id = j.team_id and pauser.id = t.paused_by_user_id
      left join users canceller on canceller.team_id = j.team_id and canceller.id = j.cancel_requested_by_user_id
     where j.team_id = :team_id and j.id = :job_id
""")

# From the job towards the front, one entry of jobs_claim_order_idx at a time and never further than the cap. As
# one count the planner, who does not know how long the lane is, would rather read and sort all of it.
AHEAD = text(f"""
    with recursive line (place, priority, id) as (
        select 0, - cast(:priority as integer), cast(:job_id as uuid)
        union all
        select line.place + 1, before.priority, before.id
          from line
         cross join lateral (
               select - b.priority as priority, b.id from jobs b
                where b.team_id = :team_id and b.lane_id = :lane_id and b.look_at = '-infinity'
                  and (- b.priority, b.id) < (line.priority, line.id)
                order by (- b.priority) desc, b.id desc
                limit 1) as before
         where line.place <= {AHEAD_CAP}
    )
    select max(place) from line
""")  # noqa: S608


@dataclass(frozen=True)
class Routed:
    """A job as it lies in its lane."""

    job: Row[Any]
    lane: Lane

    @property
    def words(self) -> str:
        return lane_words(self.lane, self.job.bound_to, self.job.connector)

    @property
    def status(self) -> JobStatus:
        return JobStatus(self.job.status)

    @property
    def at(self) -> datetime:
        found: datetime = self.job.at
        return found


async def _routed(work: Work, job_id: JobId) -> Routed:
    asked = {"team_id": work.caller.team_id, "job_id": job_id}
    job = (await work.connection.execute(FACTS, asked)).first()
    if job is None:
        raise no_job(job_id)
    return Routed(job, lane_from(job))


@answers(JOBS_EXPLAIN)
async def explain_job(work: Work, asked: JobAsked) -> Explanation:
    routed = await _routed(work, asked.job_id)
    job, waiting = routed.job, routed.status not in JOB_FINAL | JOB_HELD
    able = (
        await able_agents(work.connection, work.caller.team_id, routed.lane) if waiting else AbleAgents((), False)
    )
    ahead = await _ahead(work, routed) if job.claimable else None
    waits_for = await _waits_for(work, routed, able, ahead or 0) if waiting else ()
    old = old_transaction_words((await oldest_transaction(work.connection)).seconds)
    return Explanation(
        id=asked.job_id,
        summary=waits_for[0].words if waits_for else _not_waiting(routed),
        status=routed.status,
        lane_id=routed.lane.id,
        lane=routed.words,
        waits_for=waits_for,
        ahead=None if ahead is None else min(ahead, AHEAD_CAP),
        ahead_capped=ahead is not None and ahead > AHEAD_CAP,
        agents=able.groups,
        agents_capped=able.capped,
        held=_holding(job) if routed.status in JOB_HELD else None,
        ended=_outcome(job) if routed.status in JOB_FINAL else None,
        warnings=() if old is None else (old,),
        at=routed.at,
    )


async def warnings_for(work: Work, job_id: JobId) -> tuple[str, ...]:
    """Why no living agent could take a job just now; nothing when one could, be it busy."""
    routed = await _routed(work, job_id)
    told = [*_pause(routed), *_connector(routed)]
    if routed.lane.credentials is not CredentialLocation.PENDING and not await somebody_living(
        work.connection, work.caller.team_id, routed.lane
    ):
        able = await able_agents(work.connection, work.caller.team_id, routed.lane)
        told += [obstacle for obstacle in await _agents(work, routed, able) if obstacle.what is Obstacle.NOBODY]
    return tuple(obstacle.words for obstacle in told)


async def _ahead(work: Work, routed: Routed) -> int:
    """How many of its lane are claimed before it; one more than the cap when there are more."""
    asked = {
        "team_id": work.caller.team_id,
        "lane_id": routed.lane.id,
        "job_id": routed.job.id,
        "priority": routed.job.priority,
    }
    found: int = (await work.connection.execute(AHEAD, asked)).scalar_one()
    return found


async def _waits_for(work: Work, routed: Routed, able: AbleAgents, ahead: int) -> tuple[WaitsFor, ...]:
    """What is furthest from anybody's hands comes first: time, then people, then agents, then its turn."""
    found = [*_time(routed), *_pause(routed), *_connector(routed)]
    if routed.lane.credentials is not CredentialLocation.PENDING:
        found += await _agents(work, routed, able)
    if not found:
        free = group_of(able.groups, Standing.FREE)
        words = turn_words(min(ahead, AHEAD_CAP), ahead > AHEAD_CAP, free, routed.at)
        found.append(WaitsFor(what=Obstacle.TURN, words=words))
    return tuple(found)


def _time(routed: Routed) -> list[WaitsFor]:
    job, now = routed.job, routed.at
    if job.claimable:
        return []
    if job.look_at > now:
        if routed.status is JobStatus.SCHEDULED:
            words = f"It is scheduled to be ready {coming(job.look_at, now)}."
            return [WaitsFor(what=Obstacle.TIME, words=words, until=job.look_at)]
        last = f" after: {_said(job.error_message)}" if job.error_message else ""
        words = f"Try {job.attempt} of {job.max_attempts} is ready {coming(job.look_at, now)}{last or '.'}"
        return [WaitsFor(what=Obstacle.RETRY, words=words, until=job.look_at)]
    late = (now - job.look_at).total_seconds()
    words = "It has just come due and is put into line within a second."
    if late > UNTENDED_SECONDS:
        words = f"It was due {span(late)} ago, but nobody tends the queue: is a server or a console running?"
    return [WaitsFor(what=Obstacle.TENDING, words=words)]


def _pause(routed: Routed) -> list[WaitsFor]:
    job = routed.job
    if job.paused_at is None:
        return []
    words = paused_words(job.pause_mode, job.paused_by, job.paused_at, job.pause_reason, routed.at)
    return [WaitsFor(what=Obstacle.PAUSE, words=words)]


def _connector(routed: Routed) -> list[WaitsFor]:
    words = connector_words(routed.lane, routed.job.connector)
    return [] if words is None else [WaitsFor(what=Obstacle.CONNECTOR, words=words)]


async def _agents(work: Work, routed: Routed, able: AbleAgents) -> list[WaitsFor]:
    """Nothing when somebody is free."""
    groups = able.groups
    if group_of(groups, Standing.FREE) is not None:
        return []
    if (busy := group_of(groups, Standing.BUSY)) is not None:
        words = busy_words(busy, routed.at)
        if routed.lane.bound_agent_id is not None:
            words = bound_words(busy.agents[0], Standing.BUSY, routed.at) or words
        return [WaitsFor(what=Obstacle.BUSY, words=words)]
    return [WaitsFor(what=Obstacle.NOBODY, words=await _nobody(work, routed, able))]


async def _nobody(work: Work, routed: Routed, able: AbleAgents) -> str:
    lane, now = routed.lane, routed.at
    if lane.bound_agent_id is None:
        unknown = able.capped or able.groups
        missing = () if unknown else await unmet_by_all(work.connection, work.caller.team_id, lane)
        return nobody_words(lane, able.groups, missing, routed.job.connector, now, whole_fleet=not able.capped)
    name = shortened(routed.job.bound_to or str(lane.bound_agent_id), NAME_SHOWN)
    if able.groups:
        group = able.groups[0]
        return bound_words(group.agents[0], group.standing, now) or f"It is bound to {name}."
    if lane.credentials is CredentialLocation.AGENT:
        connector = shortened(routed.job.connector, NAME_SHOWN)
        return f"It is bound to {name}, who has no credentials for connector {connector}."
    return f"It is bound to {name}, who was deleted and will never take it; rebind it or cancel it."


def _said(message: str) -> str:
    return shortened(redact(message[:1000]), NOTE_SHOWN)


def _not_waiting(routed: Routed) -> str:
    return _held_words(routed) if routed.status in JOB_HELD else _ended_words(routed)


def _held_words(routed: Routed) -> str:
    job, now = routed.job, routed.at
    who = shortened(job.agent_name, NAME_SHOWN)
    if job.lease_expires_at <= now:
        lease = f"its lease ran out {ago(job.lease_expires_at, now)} ago"
    else:
        lease = f"its lease ends in {span((job.lease_expires_at - now).total_seconds())}"
    if job.cancel_requested_at is not None:
        asked = f"was asked to stop {ago(job.cancel_requested_at, now)} ago"
        return f"{who} {asked} and has not said yet that it did; {lease}."
    does = "works on it" if routed.status is JobStatus.RUNNING else "has it but did not start yet"
    return f"{who} {does}, {since(job.assigned_at, now)}; {lease}."


def _ended_words(routed: Routed) -> str:
    job, now = routed.job, routed.at
    when = f"{ago(job.finished_at, now)} ago"
    reason = _reason(job)
    why = f": {_said(reason)}" if reason else "."
    match routed.status:
        case JobStatus.DEAD_LETTER:
            return f"It was given up {when} after {job.attempt} of {job.max_attempts} tries{why}"
        case JobStatus.CANCELLED:
            by = f" by {shortened(job.cancelled_by, NAME_SHOWN)}" if job.cancelled_by else ""
            return f"It was cancelled {when}{by}{why}"
        case status:
            return f"It {status.value} {when}{why}"


def _reason(job: Row[Any]) -> str | None:
    found: str | None = job.cancel_reason if job.status == JobStatus.CANCELLED else None
    return found or job.error_message or job.result_summary


def _holding(job: Row[Any]) -> Holding:
    return Holding(
        agent_id=job.agent_id,
        agent_name=job.agent_name,
        claimed_by=job.claimed_by,
        since=job.assigned_at,
        started_at=job.started_at,
        lease_until=job.lease_expires_at,
        cancel_requested_at=job.cancel_requested_at,
    )


def _outcome(job: Row[Any]) -> Outcome:
    reason = _reason(job)
    return Outcome(
        at=job.finished_at, agent_name=job.agent_name, reason=None if reason is None else redact(reason)
    )
