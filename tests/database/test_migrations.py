"""Migrating: one schema whichever way it is made, by whoever and however often, with the rows kept."""

import itertools
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import TypeAlias

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from agent_console.database.address import administration_engine
from agent_console.database.fits import serves_since
from agent_console.database.migrate import (
    SchemaState,
    downgrade,
    known_migrations,
    known_revisions,
    migrate,
    migrations_folder,
    status,
)
from agent_console.database.schema import REVISION, require_served
from agent_console.database.tables import metadata
from agent_console.domain.errors import DatabaseUnavailable, SchemaMismatch
from tests.database.rows import ADD, make_team
from tests.database.team import Connection
from tests.support.clusters import Cluster, template_database

REPOSITORY = Path(__file__).parents[2]
SOURCE = REPOSITORY / "src" / "agent_console"
MIGRATE = "import sys; from agent_console.database.migrate import migrate; print(migrate(sys.argv[1]).state)"

Catalogue: TypeAlias = Mapping[str, list[tuple[object, ...]]]

# Alembic keeps its own table when everything is undone.
OURS = "relnamespace = 'public'::regnamespace and relname not like 'alembic%'"

SHAPE = {
    "tables": f"""
        select relname, relkind, reloptions, pg_get_partkeydef(oid)
          from pg_class where {OURS} and relkind in ('r', 'p') and not relispartition
    """,
    "columns": f"""
        select relname, attnum, attname, format_type(atttypid, atttypmod), attnotnull, attidentity, attgenerated,
               attcollation, pg_get_expr(adbin, adrelid)
          from pg_class join pg_attribute on attrelid = pg_class.oid
          left join pg_attrdef on adrelid = attrelid and adnum = attnum
         where {OURS} and relkind in ('r', 'p') and not relispartition and attnum > 0 and not attisdropped
    """,
    "constraints": f"""
        select relname, conname, contype, condeferrable, condeferred, convalidated, pg_get_constraintdef(c.oid)
          from pg_class join pg_constraint as c on conrelid = pg_class.oid
         where {OURS} and not relispartition
    """,
    "indexes": f"""
        select relname, pg_get_indexdef(pg_class.oid)
          from pg_class where {OURS} and relkind in ('i', 'I') and not relispartition
    """,
}
REST = {
    "partitions": f"""
        select relname, pg_get_expr(relpartbound, oid), relacl::text, relowner::regrole::text
          from pg_class where {OURS} and relispartition
    """,
    "triggers": f"""
        select relname, tgname, tgenabled, pg_get_triggerdef(t.oid)
          from pg_class join pg_trigger as t on tgrelid = pg_class.oid where {OURS} and not tgisinternal
    """,
    "types": """
        select typname, typtype, typowner::regrole::text, attnum, attname, format_type(atttypid, atttypmod)
          from pg_type left join pg_class on pg_class.oid = typrelid and relkind = 'c'
          left join pg_attribute on attrelid = pg_class.oid
         where typnamespace = 'public'::regnamespace and (relkind = 'c' or typtype not in ('c', 'b'))
    """,
    "functions": """
        select p.oid::regprocedure::text, pg_get_functiondef(p.oid), proacl::text, proowner::regrole::text
          from pg_proc as p where pronamespace = 'public'::regnamespace
    """,
    "grants": f"""
        select relname, relkind::text, relacl::text, relowner::regrole::text from pg_class where {OURS}
         union all
        select relname, attname::text, attacl::text, null
          from pg_class join pg_attribute on attrelid = pg_class.oid where {OURS} and attacl is not null
    """,
    "sequences": f"""
        select relname, format_type(seqtypid, null), seqstart, seqincrement, seqmin, seqmax, seqcycle
          from pg_class join pg_sequence on seqrelid = pg_class.oid where {OURS}
    """,
    "extensions": "select extname from pg_extension where extname <> 'plpgsql'",
}

# The tables can not be made before what their checks call.
FUNCTIONS_OF_THE_CHECKS = {
    "functions": """
        select distinct pg_get_functiondef(refobjid)
          from pg_constraint as c
          join pg_depend on classid = 'pg_constraint'::regclass and objid = c.oid
                        and refclassid = 'pg_proc'::regclass
         where contype = 'c' and connamespace = 'public'::regnamespace
    """
}

_numbers = itertools.count(1)


def _empty_database(server: Cluster) -> Iterator[str]:
    name = f"migrating_{next(_numbers)}"
    with template_database(server) as databases:
        databases.clone("template0", name)
        yield server.dsn(name)
        databases.drop(name)


@pytest.fixture
def empty(server: Cluster) -> Iterator[str]:
    """A database in which nobody has made anything yet, on every version."""
    yield from _empty_database(server)


@pytest.fixture
def empty_18(postgres: Cluster) -> Iterator[str]:
    """On the newest version; who waits too long for a lock fails instead of hanging."""
    for dsn in _empty_database(postgres):
        yield make_conninfo(dsn, options="-c lock_timeout=60s")


def catalogue(dsn: str, questions: Mapping[str, str]) -> Catalogue:
    with psycopg.connect(dsn) as connection:
        return {
            name: sorted(connection.execute(question.encode()).fetchall(), key=str)
            for name, question in questions.items()
        }


def _tables(connection: Connection) -> list[str]:
    found = connection.execute(
        "select tablename from pg_tables where schemaname = 'public' and tablename not like 'alembic%'"
        " and tablename !~ '^audit_log_[0-9]'"
    )
    return [str(name) for (name,) in found]


def _contents(dsn: str) -> dict[str, list[object]]:
    with psycopg.connect(dsn) as connection:
        return {
            table: [row for (row,) in connection.execute(f"select to_jsonb(t) from {table} t".encode())]
            for table in _tables(connection)
        }


def _fill_what_is_empty(dsn: str) -> None:
    """One row in every table that has none yet."""
    empty = {table for table, rows in _contents(dsn).items() if not rows}
    with psycopg.connect(dsn) as connection:
        team = make_team(connection, f"step-{status(dsn).revision}")
        for table, add in ADD.items():
            if table in empty:
                add(team)


@pytest.mark.rule("R002-136")
def test_every_step_undoes_itself_and_made_again_the_schema_is_the_same(empty: str) -> None:
    before = {"base": catalogue(empty, SHAPE | REST)}
    for revision in known_revisions():
        migrate(empty, revision)
        before[revision] = catalogue(empty, SHAPE | REST)

    undone = {}
    for revision in reversed(before):
        downgrade(empty, revision)
        undone[revision] = catalogue(empty, SHAPE | REST)
    migrate(empty)

    for revision, found in before.items():
        assert undone[revision] == found, revision
    assert not any(before["base"].values())
    assert catalogue(empty, SHAPE | REST) == before[REVISION]


def test_sqlalchemy_knows_the_tables_as_the_migrations_make_them(empty: str) -> None:
    migrate(empty)
    migrated = catalogue(empty, SHAPE)
    rules = catalogue(empty, FUNCTIONS_OF_THE_CHECKS)
    downgrade(empty)

    with psycopg.connect(empty) as administrator:
        for (function,) in rules["functions"]:
            administrator.execute(str(function).encode())
    with administration_engine(empty).begin() as connection:
        metadata.create_all(connection)

    made = catalogue(empty, SHAPE)
    for part in SHAPE:
        assert made[part] == migrated[part], part


@pytest.mark.rule("R002-136")
def test_every_step_up_keeps_the_rows_of_the_steps_before(empty: str) -> None:
    kept: dict[str, list[object]] = {}

    for revision in known_revisions():
        migrate(empty, revision)
        found = _contents(empty)
        assert {table: found[table] for table in kept} == kept
        _fill_what_is_empty(empty)
        kept = _contents(empty)

    assert set(kept) == set(ADD)
    assert all(kept.values())


@pytest.mark.parametrize("target", ["0002", "0004"])
def test_a_step_down_and_up_again_keeps_the_rows_of_the_steps_below(empty: str, target: str) -> None:
    migrate(empty)
    _fill_what_is_empty(empty)
    before = _contents(empty)

    downgrade(empty, target)
    left = _contents(empty)
    migrate(empty)

    again = _contents(empty)
    assert left == {table: before[table] for table in left}
    assert left == {table: again[table] for table in left}


@pytest.mark.rule("R004-59")
def test_an_empty_database_is_made_ready_and_a_second_time_nothing_changes(empty: str) -> None:
    first = migrate(empty)
    _fill_what_is_empty(empty)
    filled = _contents(empty)

    second = migrate(empty)

    assert (first.state, second.state) == (SchemaState.EMPTY, SchemaState.CURRENT)
    assert _contents(empty) == filled


def test_of_many_threads_that_migrate_at_once_one_does_it(empty_18: str) -> None:
    together = Barrier(4)

    def one(_: int) -> SchemaState:
        together.wait(timeout=60)
        return migrate(empty_18).state

    with ThreadPoolExecutor(4) as threads:
        found = sorted(threads.map(one, range(4)))

    assert found == sorted([SchemaState.EMPTY] + [SchemaState.CURRENT] * 3)
    assert status(empty_18).state is SchemaState.CURRENT


def test_of_two_programs_that_migrate_at_once_one_does_it(empty_18: str) -> None:
    programs = [_program(REPOSITORY, empty_18) for _ in range(2)]

    said = [program.communicate(timeout=60) for program in programs]

    assert sorted(state.strip() for state, _ in said) == ["current", "empty"], said
    assert [program.returncode for program in programs] == [0, 0]


def test_the_program_is_written_for_the_newest_migration() -> None:
    newest = known_revisions()[-1]

    require_served(newest, listed=False)

    assert newest == REVISION
    assert sorted(known_revisions()) == list(known_revisions()), "older and newer are told by their numbers"


def test_a_schema_newer_than_the_program_is_refused_and_left_alone(database: str) -> None:
    with psycopg.connect(database) as connection:
        connection.execute("update alembic_version set version_num = '9999'")
        connection.execute("delete from schema_fits")

    with pytest.raises(SchemaMismatch, match="newer than this program") as caught:
        migrate(database)

    assert "Upgrade agent-console" in (caught.value.hint or "")
    assert status(database).revision == "9999"


def test_a_newer_schema_that_serves_the_program_is_left_alone(database: str) -> None:
    with psycopg.connect(database) as connection:
        connection.execute("update alembic_version set version_num = '9999'")

    found = migrate(database)

    assert (found.state, found.pending, found.serves_this_program) == (SchemaState.NEWER, (), True)
    assert status(database).revision == "9999"


def test_every_migration_says_since_which_program_it_serves() -> None:
    said = [serves_since(migration) for migration in known_migrations()]

    assert set(said) <= set(known_revisions())
    assert sorted(said) == said, "a program that was cut off is never served again"
    assert all(since <= revision for since, revision in zip(said, known_revisions(), strict=True))


def test_a_table_that_somebody_holds_is_not_waited_for(empty_18: str) -> None:
    migrate(empty_18, "0004")

    with psycopg.connect(empty_18) as holding:
        holding.execute("lock table jobs in row exclusive mode")
        with pytest.raises(DatabaseUnavailable, match="changed nothing") as refused:
            migrate(make_conninfo(empty_18, options="-c statement_timeout=20s"), table_seconds=0.1)
    stood = status(empty_18)
    migrate(empty_18)

    assert "long transactions" in (refused.value.hint or "")
    assert (stood.revision, status(empty_18).state) == ("0004", SchemaState.CURRENT)


@pytest.mark.parametrize("target", ["base", "0002"])
def test_a_schema_older_than_the_program_is_told_with_the_command_that_helps(empty_18: str, target: str) -> None:
    migrate(empty_18)
    downgrade(empty_18, target)

    with pytest.raises(SchemaMismatch) as caught:
        require_served(status(empty_18).revision, listed=True)

    assert caught.value.hint == "Run: agent-console db migrate"


def test_an_installed_package_migrates_with_the_files_it_brings(empty_18: str, tmp_path: Path) -> None:
    """Laid out as the wheel is, by the wheel's own list."""
    wheel = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"][
        "wheel"
    ]
    shutil.copytree(SOURCE, tmp_path / "agent_console")
    for place, inside in wheel["force-include"].items():
        shutil.copytree(REPOSITORY / place, tmp_path / inside)

    program = _program(tmp_path, empty_18, PYTHONPATH=str(tmp_path))
    said, complaint = program.communicate(timeout=60)

    assert said.strip() == "empty", complaint
    assert status(empty_18).state is SchemaState.CURRENT


def test_a_checkout_uses_the_migrations_beside_its_sources() -> None:
    folder = migrations_folder()

    assert folder == REPOSITORY / "migrations"
    files = sorted(file.name for file in (folder / "sql").iterdir())
    there, back = ({name[:4] for name in files if name.endswith(end)} for end in (".up.sql", ".down.sql"))
    assert there == back == set(known_revisions())


def _program(folder: Path, dsn: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", MIGRATE, dsn],
        cwd=folder,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
