"""Every table as SQLAlchemy knows it. The migrations make them; a test holds the two together."""

from agent_console.database.tables.audit import audit_checkpoints, audit_heads, audit_log, audit_seals
from agent_console.database.tables.columns import IdType, metadata
from agent_console.database.tables.conversations import messages, runs, thread_participants, threads
from agent_console.database.tables.duties import duty_rounds
from agent_console.database.tables.identity import operator_tokens, settings, teams, users
from agent_console.database.tables.policy import a2a_route_versions, a2a_routes, approval_looks, approvals
from agent_console.database.tables.queue import (
    job_events,
    job_results,
    jobs,
    lanes,
    queue_counts,
    queue_moves,
    queue_tallies,
)
from agent_console.database.tables.registry import (
    agent_runtime,
    agents,
    pool_counts,
    registration_tokens,
    sessions,
    worker_tokens,
)
from agent_console.database.tables.schema_fits import schema_fits
from agent_console.database.tables.storage import agent_connectors, collections, connectors

__all__ = [
    "IdType",
    "a2a_route_versions",
    "a2a_routes",
    "agent_connectors",
    "agent_runtime",
    "agents",
    "approval_looks",
    "approvals",
    "audit_checkpoints",
    "audit_heads",
    "audit_log",
    "audit_seals",
    "collections",
    "connectors",
    "duty_rounds",
    "job_events",
    "job_results",
    "jobs",
    "lanes",
    "messages",
    "metadata",
    "operator_tokens",
    "pool_counts",
    "queue_counts",
    "queue_moves",
    "queue_tallies",
    "registration_tokens",
    "runs",
    "schema_fits",
    "sessions",
    "settings",
    "teams",
    "thread_participants",
    "threads",
    "users",
    "worker_tokens",
]
