"""Alembic's entry: runs on the connection that agent_console.database.migrate hands over."""

from alembic import context

from agent_console.database.fits import fits_recorded
from agent_console.database.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transaction_per_migration=True,
    on_version_apply=fits_recorded,
)
with context.begin_transaction():
    context.run_migrations()
