"""How the database is, in one look at its own settings and catalogues."""

from sqlalchemy import text

from agent_console.database.schema import REVISION
from agent_console.domain.database_state import DatabaseState
from agent_console.domain.records import Nothing
from agent_console.repository.operations.database import DATABASE_STATE
from agent_console.repository.postgres.old_transactions import oldest_transaction
from agent_console.repository.postgres.work import Work, answers

# Settings, counters and catalogues only: no table of ours but the few rows on its schema. pg_stat_database counts
# the connections of everybody for everybody.
LOOK = text("""
    select clock_timestamp() as at,
           current_setting('server_version') as version,
           current_setting('server_version_num')::integer as version_number,
           (select version_num from alembic_version) as schema_revision,
           exists (select from alembic_version where version_num = :wanted)
               or exists (select from schema_fits where revision = :wanted) as is_served,
           pg_is_in_recovery() as is_standby,
           current_setting('max_connections')::integer as max_connections,
           (select coalesce(sum(numbackends), 0)::integer from pg_stat_database) as connections,
           current_setting('autovacuum')::boolean as autovacuum,
           current_user as user,
           (select rolsuper from pg_roles where rolname = current_user) as is_superuser,
           has_table_privilege('audit_log', 'update, delete, truncate') as may_rewrite_audit
""").bindparams(wanted=REVISION)


@answers(DATABASE_STATE)
async def database_state(work: Work, request: Nothing) -> DatabaseState:
    oldest = await oldest_transaction(work.connection)
    row = (await work.connection.execute(LOOK)).one()
    return DatabaseState(
        **row._mapping,
        wanted_revision=REVISION,
        oldest_transaction_seconds=oldest.seconds,
        hidden_transactions=oldest.hidden,
    )
