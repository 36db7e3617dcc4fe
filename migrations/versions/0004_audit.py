"""The audit trail in months, its seals, and the checkpoints that outlive a dropped month."""

from agent_console.database.migrate import run_sql

revision = "0004"
down_revision = "0003"
serves_since = "0004"


def upgrade() -> None:
    run_sql("0004_audit.up.sql")


def downgrade() -> None:
    run_sql("0004_audit.down.sql")
