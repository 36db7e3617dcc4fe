"""The audit trail: written in the transaction of each act, sealed, read, proved and kept."""

from agent_console.repository.postgres.audit.writing import (
    actor_of,
    append,
    append_all,
    append_each,
    append_for,
    without_secrets,
)

__all__ = ["actor_of", "append", "append_all", "append_each", "append_for", "without_secrets"]
