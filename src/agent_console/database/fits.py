"""Which programs a schema serves: written with every migration, in its own transaction.

A program knows one schema, the newest when it was made, and is named by its number. Every file of
`migrations/versions` says in `serves_since` which is the oldest program that still works once it has run:

- it only adds (expands): the same as the migration before says, and whatever runs goes on;
- it takes away or changes what older programs use (contracts): the first program that did without. Its own number
  means that nobody but a program of this version works from then on.
"""

from alembic.runtime.migration import MigrationContext, MigrationInfo
from alembic.script import Script, ScriptDirectory
from sqlalchemy import Connection, text

IS_KEPT = text("select to_regclass('schema_fits') is not null")
FITS = text("select revision from schema_fits order by revision")
CUT_OFF = text("delete from schema_fits where revision < :serves_since")
ADD = text("insert into schema_fits (revision) values (:revision) on conflict (revision) do nothing")
REMOVE = text("delete from schema_fits where revision = :revision")


def serves_since(script: Script) -> str:
    """The oldest program that works once this migration has run."""
    return str(script.module.serves_since)


def programs_served(connection: Connection, revision: str | None) -> tuple[str, ...]:
    """The programs that work on this database, oldest first; the one that was made for its schema always does."""
    listed = [str(found) for found in connection.scalars(FITS)] if connection.scalar(IS_KEPT) else []
    return tuple(sorted({*listed, *([] if revision is None else [revision])}))


def fits_recorded(ctx: MigrationContext, step: MigrationInfo, heads: object, run_args: object) -> None:
    """Called by Alembic after each step, before it is committed."""
    connection, revision = ctx.connection, step.up_revision_id
    if connection is None or revision is None or not connection.scalar(IS_KEPT):
        return
    if not step.is_upgrade:
        connection.execute(REMOVE, {"revision": revision})
        return
    connection.execute(CUT_OFF, {"serves_since": serves_since(_script(ctx, revision))})
    connection.execute(ADD, {"revision": revision})


def _script(ctx: MigrationContext, revision: str) -> Script:
    scripts: ScriptDirectory = ctx.opts["script"]
    return scripts.get_revision(revision)
