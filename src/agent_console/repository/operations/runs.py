"""Runs: one agent asked to act in a thread, and the delegation of one agent to another."""

from agent_console.domain.audit import audit_action
from agent_console.domain.delegation import (
    WAIT_SECONDS,
    Delegation,
    DelegationAsked,
    DelegationState,
    NewDelegation,
)
from agent_console.domain.permissions import Permission
from agent_console.domain.records import Page
from agent_console.domain.runs import (
    NewRun,
    Run,
    RunAsked,
    RunCancelling,
    RunQuery,
    ThreadRunQuery,
    Trace,
    TraceAsked,
    can_be_cancelled,
)
from agent_console.repository.operations.declared import AnyOperation, Operation, Verb

RUN_CREATED = audit_action("run.create", "target_agent_id", "job_id", "trace_id", "parent_run_id", "route_version")
RUN_BLOCKED = audit_action("run.policy.blocked", "rule", "target_agent_id", "open_runs", "limit")
# Written by the database where the run's job moves, whoever moves it (run_follows_job).
RUN_STARTED = audit_action("run.start", "job_id", "attempt")
RUN_FINISHED = audit_action("run.finish", "job_id", "attempt")
RUN_FAILED = audit_action("run.fail", "job_id", "attempt")
RUN_TIMED_OUT = audit_action("run.timeout", "job_id", "attempt")
RUN_CANCELLED = audit_action("run.cancel", "job_id", "attempt", "from")
RUN_STOPPED = audit_action("run.stop", "job_id", "attempt")

_ASKED = ("from_agent_id", "to_agent_id", "rule", "policy_version", "parent_run_id", "trace_id")
DELEGATION_ALLOWED = audit_action("a2a.delegate.allowed", *_ASKED)
DELEGATION_REQUESTED = audit_action("a2a.delegate.request", *_ASKED, "digest")
DELEGATION_BLOCKED = audit_action("a2a.delegate.blocked", *_ASKED)
DELEGATION_RATE_LIMITED = audit_action("a2a.delegate.rate_limited", *_ASKED)

RUNS_LIST = Operation(
    name="runs.list",
    summary="The runs of the threads you may read, newest first.",
    verb=Verb.GET,
    path="/v1/runs",
    request=RunQuery,
    answer=Page[Run],
    permission=Permission.READ_THREADS,
    tells=True,
)
RUNS_IN_THREAD = Operation(
    name="runs.in_thread",
    summary="The runs of one thread, newest first.",
    verb=Verb.GET,
    path="/v1/threads/{thread_id}/runs",
    request=ThreadRunQuery,
    answer=Page[Run],
    permission=Permission.READ_THREADS,
    tells=True,
)
RUNS_TRACE = Operation(
    name="runs.trace",
    summary="Who asked whom: all runs of one request as a tree, and what waits for a person.",
    verb=Verb.GET,
    path="/v1/traces",
    request=TraceAsked,
    answer=Trace,
    permission=Permission.READ_THREADS,
    tells=True,
)
RUNS_GET = Operation(
    name="runs.get",
    summary="One run, whole.",
    verb=Verb.GET,
    path="/v1/runs/{run_id}",
    request=RunAsked,
    answer=Run,
    permission=Permission.READ_THREADS,
    tells=True,
)
RUNS_START = Operation(
    name="runs.start",
    summary="Ask an agent to act in a thread.",
    verb=Verb.POST,
    path="/v1/threads/{thread_id}/runs",
    request=NewRun,
    answer=Run,
    permission=Permission.USE_THREADS,
    audit=RUN_CREATED,
    created=True,
)
RUNS_CANCEL = Operation(
    name="runs.cancel",
    summary="Cancel a run: at once while it waits, else its agent is asked to stop.",
    verb=Verb.POST,
    path="/v1/runs/{run_id}/cancel",
    request=RunCancelling,
    answer=Run,
    permission=Permission.USE_THREADS,
    audit=RUN_CANCELLED,
    danger=True,
    fits=can_be_cancelled,
)
RUNS_DELEGATE = Operation(
    name="runs.delegate",
    summary="Ask another agent to act, as an agent does: the policy lets it, blocks it, or asks a person.",
    verb=Verb.POST,
    path="/v1/delegations",
    request=NewDelegation,
    answer=Delegation,
    permission=Permission.ACT_AS_AGENT,
    audit=DELEGATION_ALLOWED,
    created=True,
    accepted=lambda delegation: delegation.state is DelegationState.WAITING,
    per_minute=60,
)
RUNS_OUTCOME = Operation(
    name="runs.outcome",
    summary="What became of a delegation of yours; waits until something has changed.",
    verb=Verb.GET,
    path="/v1/delegations",
    request=DelegationAsked,
    answer=Delegation,
    permission=Permission.ACT_AS_AGENT,
    waits_seconds=WAIT_SECONDS,
)

NOUNS: dict[str, str] = {"runs": "What agents were asked to do in threads, and whom they asked in turn."}

RUNS: tuple[AnyOperation, ...] = (
    RUNS_LIST,
    RUNS_IN_THREAD,
    RUNS_TRACE,
    RUNS_GET,
    RUNS_START,
    RUNS_CANCEL,
    RUNS_DELEGATE,
    RUNS_OUTCOME,
)
