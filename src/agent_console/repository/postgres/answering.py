"""Which handler answers which operation.

A handler is made known by `@answers` when its module is imported, so every module that has one is imported here.
"""
# ruff: noqa: F401

from typing import Any

from agent_console.repository.operations import AnyOperation
from agent_console.repository.postgres import (
    agent_changes,
    agents,
    approval_lists,
    approval_looks,
    attention,
    audit_proof,
    audit_retention,
    audit_tail,
    audit_trail,
    bulk_jobs,
    claiming,
    collections,
    connector_credentials,
    connectors,
    database_state,
    deciding,
    delegation,
    disconnect,
    duty_lists,
    explaining,
    holding,
    hosted,
    job_acts,
    job_events,
    jobs,
    many_jobs,
    me,
    message_pages,
    message_search,
    messages,
    new_agents,
    operator_tokens,
    outcomes,
    participants,
    pausing,
    policy_files,
    posting,
    presence,
    queue_stats,
    registration,
    registration_tokens,
    reporting,
    route_changes,
    route_drafts,
    route_explaining,
    route_matrix,
    routes,
    run_lists,
    runs,
    seal_status,
    sessions,
    team_settings,
    threads,
    traces,
    users,
    worker_tokens,
)
from agent_console.repository.postgres.work import HANDLERS, Handler


def handler_of(operation: AnyOperation) -> Handler[Any, Any]:
    return HANDLERS[operation.name]
