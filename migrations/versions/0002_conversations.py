"""Threads, messages, runs; A2A routes with their history; approvals."""

from agent_console.database.migrate import run_sql

revision = "0002"
down_revision = "0001"
serves_since = "0002"


def upgrade() -> None:
    run_sql("0002_conversations.up.sql")


def downgrade() -> None:
    run_sql("0002_conversations.down.sql")
