"""Which handler answers which operation.

A handler is made known by `@answers` when its module is imported, so every module that has one is imported here.
"""
# ruff: noqa: F401

from typing import Any

from agent_console.repository.operations import AnyOperation
from agent_console.repository.postgres import attention, database_state, me, team_settings
from agent_console.repository.postgres.audit import proof as audit_proof
from agent_console.repository.postgres.audit import retention as audit_retention
from agent_console.repository.postgres.audit import seal_status
from agent_console.repository.postgres.audit import tail as audit_tail
from agent_console.repository.postgres.audit import trail as audit_trail
from agent_console.repository.postgres.duties import lists as duty_lists
from agent_console.repository.postgres.policy import (
    approval_lists,
    approval_looks,
    deciding,
    delegation,
    outcomes,
    policy_files,
    route_changes,
    route_explaining,
    route_matrix,
    route_replays,
    routes,
)
from agent_console.repository.postgres.queue import (
    bulk_jobs,
    claiming,
    creating,
    explaining,
    holding,
    job_acts,
    job_events,
    jobs,
    many_jobs,
    pausing,
    reporting,
)
from agent_console.repository.postgres.queue import stats as queue_stats
from agent_console.repository.postgres.registry import (
    agent_changes,
    agents,
    collections,
    connector_credentials,
    connectors,
    disconnect,
    hosted,
    new_agents,
    operator_tokens,
    presence,
    registration,
    registration_tokens,
    sessions,
    users,
    worker_tokens,
)
from agent_console.repository.postgres.runs import lists as run_lists
from agent_console.repository.postgres.runs import runs, traces
from agent_console.repository.postgres.threads import (
    message_pages,
    message_search,
    messages,
    participants,
    posting,
    threads,
)
from agent_console.repository.postgres.work import HANDLERS, Handler


def handler_of(operation: AnyOperation) -> Handler[Any, Any]:
    return HANDLERS[operation.name]
