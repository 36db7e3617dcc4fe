"""Lanes, jobs, events, results."""

from agent_console.database.migrate import run_sql

revision = "0003"
down_revision = "0002"
serves_since = "0003"


def upgrade() -> None:
    run_sql("0003_queue.up.sql")


def downgrade() -> None:
    run_sql("0003_queue.down.sql")
