"""What happened on one day of the example fleet, as its audit trail tells it: for pictures."""

from datetime import timedelta

from agent_console.database.example_conversations import OPERATOR
from agent_console.domain.audit import Fact
from agent_console.domain.ids import ApprovalId, JobId, RouteId, RunId, ThreadId
from tests.support.fleet import AT, Fleet
from tests.support.trail import seal
from tests.tui_console.audit_stage import Told, found_id, sealed_at, tell
from tests.tui_console.stage import ADMIN


def tell_the_story(fleet: Fleet) -> None:
    """What people, agents and the system did, the last two not sealed yet."""
    thread = ThreadId.of(found_id(fleet, ThreadId, "select id from threads order by id limit 1"))
    run = RunId.of(found_id(fleet, RunId, "select id from runs order by id limit 1"))
    route = RouteId.of(found_id(fleet, RouteId, "select id from a2a_routes order by id limit 1"))
    approval = ApprovalId.of(found_id(fleet, ApprovalId, "select id from approvals order by id limit 1"))
    job = JobId.of(found_id(fleet, JobId, "select id from jobs where type = 'deploy' order by id limit 1"))
    atlas, gantry = str(fleet.agent_id("atlas")), str(fleet.agent_id("gantry"))
    pair: dict[str, Fact] = {"from_agent_id": atlas, "to_agent_id": gantry}
    tell(
        fleet,
        Told("a2a.route.create", "route", str(route), 90_000, person=ADMIN, reason="first policy", facts=pair),
        Told("thread.create", "thread", str(thread), 4_000, person=OPERATOR, thread=thread),
        Told("message.create", "message", "msg_1", 3_990, person=OPERATOR, thread=thread, facts={"recipients": 1}),
        Told("run.create", "run", str(run), 3_980, person=OPERATOR, thread=thread, run=run),
        Told("run.start", "run", str(run), 3_970, agent="atlas", thread=thread, run=run, facts={"attempt": 1}),
        Told(
            "a2a.delegate.blocked", "agent", gantry, 2_000, agent="atlas", decision="block", thread=thread,
            reason="no route from atlas to gantry", facts=pair | {"rule": "no_route"},
        ),
        Told(
            "a2a.delegate.allowed", "agent", gantry, 1_500, agent="atlas", decision="allow", thread=thread,
            facts=pair | {"rule": "route", "policy_version": 1},
        ),
        Told("approval.expire", "approval", str(approval), 900, decision="block", reason="nobody decided in time"),
        Told("agent.drain", "agent", gantry, 600, person=ADMIN, reason="disk swap", facts={"jobs": 2}),
        Told("job.cancel", "job", str(job), 300, person=ADMIN, reason="wrong month", facts={"from": "queued"}),
        Told("auth.login.failed", "address", "10.0.0.9", 200),
        Told("job.retry_many", "job", str(job), 60, person=OPERATOR, facts={"done": 42, "refused": 0}),
    )  # fmt: skip
    seal(fleet)
    tell(
        fleet,
        Told("job.create", "job", str(job), 2, agent="atlas"),
        Told("agent.resume", "agent", gantry, 1, ADMIN),
    )
    sealed_at(fleet, AT - timedelta(seconds=4))
