"""Taking, finishing and tending jobs; the counters that screens read instead of counting."""

from agent_console.database.migrate import run_sql

revision = "0005"
down_revision = "0004"
serves_since = "0005"


def upgrade() -> None:
    for part in ("counting", "take_turns", "take_turn", "tending"):
        run_sql(f"0005_{part}.up.sql")


def downgrade() -> None:
    run_sql("0005_working_the_queue.down.sql")
