"""Teams, people, agents, tokens, connectors, collections, sessions."""

from agent_console.database.migrate import run_sql

revision = "0001"
down_revision = None
serves_since = "0001"


def upgrade() -> None:
    run_sql("0001_agents.up.sql")
    run_sql("0001_storage.up.sql")


def downgrade() -> None:
    run_sql("0001_registry.down.sql")
