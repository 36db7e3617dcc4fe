"""Every state against all that agents and operators can do: what the diagram does not hold changes nothing."""

from collections.abc import Callable

import pytest

from agent_console.domain.errors import Conflict
from agent_console.domain.ids import JobId
from agent_console.domain.job_acts import JobCancelling, JobRebinding, JobReprioritising, JobRetrying
from agent_console.domain.states import JobStatus
from agent_console.repository.operations import AnyOperation
from agent_console.repository.operations.job_acts import JOBS_CANCEL, JOBS_REBIND, JOBS_REPRIORITISE, JOBS_RETRY
from agent_console.repository.port import Repository
from tests.queue.crew import Crew, Row
from tests.queue.test_contract_working import every_report

HELD = {
    "agent_id": "atlas",
    "claimed_by": "atlas",
    "assigned_at": "now()",
    "lease_expires_at": "now() + interval '1 hour'",
    "look_at": "now() + interval '1 hour'",
}
ENDED = {"finished_at": "now()", "look_at": "null", "agent_id": "atlas", "started_at": "now()"}
WAITING = {"agent_id": "null"}
STATES: dict[str, dict[str, str]] = {
    "scheduled": WAITING | {"scheduled_for": "'2199-01-01'", "look_at": "'2199-01-01'"},
    "queued": WAITING,
    "assigned": HELD,
    "running": HELD | {"started_at": "now()"},
    **dict.fromkeys(("succeeded", "failed", "dead_letter", "cancelled"), ENDED),
}
FINAL = ("succeeded", "failed", "dead_letter", "cancelled")
REPORTS = ("start", "renew", "progress", "log", "complete", "fail", "acknowledge")

# What its own agent is told with the attempt it was given. Nobody holds what waits.
OF_AGENTS: dict[tuple[str, str], str] = {
    **{(state, report): "not_owner" for state in ("scheduled", "queued") for report in REPORTS},
    **{(state, report): "conflict" for state in FINAL for report in REPORTS},
    ("assigned", "complete"): "conflict",
    ("assigned", "acknowledge"): "conflict",
    ("running", "acknowledge"): "conflict",
}
OF_OPERATORS: dict[tuple[str, str], str] = {
    **{(state, "cancel"): "conflict" for state in ("succeeded", "failed", "dead_letter")},
    **{(state, "retry"): "conflict" for state in ("scheduled", "queued", "assigned", "running", "succeeded")},
    **{
        (state, act): "conflict" for state in ("assigned", "running", *FINAL) for act in ("reprioritise", "rebind")
    },
}


async def in_state(crew: Crew, state: str) -> JobId:
    """Written there by hand: whether the way leads there is shown elsewhere."""
    made = await crew.enqueue()
    values = {
        name: f"'{crew.fleet.agent_id(value).hex}'::uuid" if name == "agent_id" and value == "atlas" else value
        for name, value in STATES[state].items()
    }
    if "claimed_by" in values:
        values["claimed_by"] = "'atlas'"
    changes = ", ".join(f"{name} = {value}" for name, value in values.items())
    crew.fleet.execute(f"update jobs set status = '{state}', {changes} where id = %s", made.id)
    return made.id


def acts(crew: Crew, job_id: JobId) -> dict[str, tuple[AnyOperation, object]]:
    beacon = crew.id_of("beacon")
    return {
        "cancel": (JOBS_CANCEL, JobCancelling(job_id=job_id)),
        "retry": (JOBS_RETRY, JobRetrying(job_id=job_id)),
        "reprioritise": (JOBS_REPRIORITISE, JobReprioritising(job_id=job_id, priority=7)),
        "rebind": (JOBS_REBIND, JobRebinding(job_id=job_id, agent_id=beacon)),
    }


Refused = dict[tuple[str, str], str]


async def refusals(
    crew: Crew, who: Repository, asked: Callable[[JobId], dict[str, tuple[AnyOperation, object]]]
) -> tuple[Refused, Refused]:
    """The code of each refusal, and each refusal that left something behind all the same."""
    codes: Refused = {}
    changed: Refused = {}
    for state in STATES:
        job_id = await in_state(crew, state)
        for name in asked(job_id):
            operation, said = asked(job_id)[name]
            before = kept(crew, job_id)
            try:
                await who.call(operation, said)
            except Conflict as refused:
                codes[state, name] = refused.code
                if kept(crew, job_id) != before:
                    changed[state, name] = refused.code
            else:
                job_id = await in_state(crew, state)
    return codes, changed


def kept(crew: Crew, job_id: JobId) -> list[Row]:
    """The whole row, its whole story, and how many jobs there are."""
    return crew.rows(
        "select to_jsonb(j) as job, (select count(*) from jobs) as jobs,"
        " (select jsonb_agg(e order by e.seq) from job_events e where e.job_id = j.id) as events"
        " from jobs j where j.id = %s",
        job_id,
    )


@pytest.mark.rule("R000-93", "R003-28", "R003-29", "R003-30", "U003-4", "R003-33", "R003-34", "R003-35", "U001-16")
async def test_agents_are_refused_every_move_outside_the_diagram(crew: Crew) -> None:
    atlas = await crew.agent("atlas")

    def asked(job_id: JobId) -> dict[str, tuple[AnyOperation, object]]:
        return {
            operation.name.removeprefix("jobs."): (operation, said) for operation, said in every_report(job_id, 1)
        }

    codes, changed = await refusals(crew, atlas, asked)

    assert codes == OF_AGENTS
    assert changed == {}


@pytest.mark.rule("R000-93", "R003-28", "R003-29", "R003-30", "U001-15", "U001-12")
async def test_operators_are_refused_every_move_outside_the_diagram(crew: Crew) -> None:
    codes, changed = await refusals(crew, crew.operator, lambda job_id: acts(crew, job_id))

    assert codes == OF_OPERATORS
    assert changed == {}


@pytest.mark.rule("R003-30")
async def test_cancelling_what_is_cancelled_changes_nothing(crew: Crew) -> None:
    job_id = await in_state(crew, "cancelled")
    before = kept(crew, job_id)

    shown = await crew.operator.call(JOBS_CANCEL, JobCancelling(job_id=job_id))

    assert shown.status is JobStatus.CANCELLED
    assert kept(crew, job_id) == before
