"""The four roles of a database: who owns the tables, who works with them, who prunes, who only looks.

Roles belong to the whole cluster and several databases may share them, so they are made when missing and
never dropped; what each may do is granted table by table in the migrations.
"""

from psycopg import errors as pg
from psycopg.conninfo import make_conninfo
from sqlalchemy import Connection, text
from sqlalchemy.exc import DataError, ProgrammingError

from agent_console.database.address import why
from agent_console.domain.errors import DatabaseUnavailable

OWNER = "agent_console_owner"
APP = "agent_console_app"
MAINTENANCE = "agent_console_maintenance"
READ_ONLY = "agent_console_readonly"

# From PostgreSQL 16 on, whoever makes a role is a member of it who may grant it, but not yet work as it.
MAY_WORK_AS = "case when current_setting('server_version_num')::integer >= 160000 then 'set' else 'member' end"

MAKE_ROLES = f"""
do $$
declare
    wanted text;
begin
    foreach wanted in array array['{OWNER}', '{APP}', '{MAINTENANCE}', '{READ_ONLY}'] loop
        if not exists (select from pg_roles where rolname = wanted) then
            begin
                execute format('create role %I nologin', wanted);
            exception when duplicate_object or unique_violation then null;
            end;
        end if;
    end loop;
    if not pg_has_role('{MAINTENANCE}', '{APP}', 'member') then
        grant {APP} to {MAINTENANCE};
    end if;
    begin
        -- To warn of a transaction that somebody left open; without it the program works as well.
        if not pg_has_role('{APP}', 'pg_read_all_stats', 'member') then
            grant pg_read_all_stats to {APP};
        end if;
    exception when insufficient_privilege then null;
    end;
    if not pg_has_role(current_user, '{OWNER}', {MAY_WORK_AS}) then
        execute format('grant {OWNER} to %I', current_user);
    end if;
end
$$;
"""

ALLOW_OWNER = f"grant usage, create on schema public to {OWNER}"
ALLOW_REST = f"grant usage on schema public to {APP}, {MAINTENANCE}, {READ_ONLY}"
OWNER_IS_READY = text(f"""
    select pg_has_role(current_user, oid, {MAY_WORK_AS}) and has_schema_privilege(oid, 'public', 'create')
      from pg_roles where rolname = :owner
""")  # noqa: S608


def with_role(dsn: str, role: str) -> str:
    """The same address for sessions that have no more rights than this role."""
    return make_conninfo(dsn, options=f"-c role={role}")


def ensure_roles(connection: Connection) -> None:
    """Make what is missing; a user who may not is told exactly what an administrator has to run."""
    if connection.scalar(OWNER_IS_READY, {"owner": OWNER}):
        return
    try:
        for statement in (MAKE_ROLES, ALLOW_OWNER, ALLOW_REST):
            connection.execute(text(statement))
    except ProgrammingError as error:
        connection.rollback()
        raise DatabaseUnavailable(
            "This database user may not create the four agent_console roles.",
            hint="Run `agent-console db migrate` once as an administrator, or let one create the roles "
            f"{OWNER}, {APP}, {MAINTENANCE}, {READ_ONLY}, grant you {OWNER}, "
            f"and grant {OWNER} create on schema public.",
        ) from error
    connection.commit()


def become_owner(connection: Connection) -> None:
    try:
        connection.execute(text(f"set role {OWNER}"))
    except (DataError, ProgrammingError) as error:
        connection.rollback()
        hint = "Run: agent-console db migrate"
        if isinstance(error.orig, pg.InsufficientPrivilege):
            user = connection.scalar(text("select quote_ident(current_user)"))
            hint = f"Have an administrator of the database run: grant {OWNER} to {user}"
        raise DatabaseUnavailable(
            f"This database user may not work as {OWNER}: {why(error)}.", hint=hint
        ) from error
    connection.commit()
