"""Spread the teams over the nodes of a Citus cluster: every table of the teams by its team, all side by side.

What has to be done is read from the catalogue, so a table that a later migration brings is found by itself. Citus
asks two things that plain PostgreSQL does not: every unique rule names the team, and no reference that names it
empties itself when its target goes.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import Connection, text

from agent_console.database.address import administration_engine, refused
from agent_console.database.migrate import MIGRATION_LOCK, SchemaState, status
from agent_console.domain.errors import ConfigError

TEAM = "team_id"
# It is small, read everywhere, and its short name is unique in all of the cluster: each node holds a copy.
COPIED = "teams"
# The others lie beside it.
FIRST = "users"

# Triggers of a shard ask other shards of the same team, which are on the same node.
CLUSTER_SETTINGS = ("citus.enable_unsafe_triggers", "citus.allow_nested_distributed_execution")

IS_THERE = text("select to_regproc('create_distributed_table') is not null")
TABLES = text("""
    select r.relname::text
      from pg_class r
     where r.relnamespace = 'public'::regnamespace and r.relkind in ('r', 'p') and not r.relispartition
       and (r.relname = :copied
            or exists (select from pg_attribute a where a.attrelid = r.oid and a.attname = :team
                                                    and not a.attisdropped))
     order by r.relname
""")
SPREAD = text("select logicalrelid::regclass::text from pg_dist_partition")
KEYS = text("""
    select r.relname::text as on_table, coalesce(c.conname, x.relname)::text as name,
           i.indisprimary as is_primary,
           (select array_agg(a.attname::text order by place)
              from unnest(i.indkey::smallint[]) with ordinality as k (number, place)
              join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.number) as columns
      from pg_index i
      join pg_class r on r.oid = i.indrelid
      join pg_class x on x.oid = i.indexrelid
      left join pg_constraint c on c.conindid = i.indexrelid and c.conrelid = i.indrelid
     where i.indisunique and r.relname = any(:tables) and r.relnamespace = 'public'::regnamespace
""")
REFERENCES = text("""
    select r.relname::text as on_table, f.relname::text as target, c.conname::text as name,
           c.confdeltype in ('n', 'd') or c.confupdtype in ('n', 'd', 'c') as empties,
           (select array_position(c.conkey, a.attnum) from pg_attribute a
             where a.attrelid = c.conrelid and a.attname = :team) as place,
           (select array_position(c.confkey, a.attnum) from pg_attribute a
             where a.attrelid = c.confrelid and a.attname = :team) as target_place,
           pg_get_constraintdef(c.oid) as definition
      from pg_constraint c
      join pg_class r on r.oid = c.conrelid
      join pg_class f on f.oid = c.confrelid
     where c.contype = 'f' and r.relnamespace = 'public'::regnamespace and not r.relispartition
     order by c.conname
""")
FUNCTIONS = text("""
    select p.oid::regprocedure::text
      from pg_proc p
     where p.pronamespace = 'public'::regnamespace
       and not exists (select from pg_depend d where d.objid = p.oid and d.deptype = 'e')
     order by 1
""")


@dataclass(frozen=True)
class Reference:
    """A foreign key, and whether a distributed table may have it."""

    table: str
    target: str
    name: str
    definition: str
    kept: bool
    fits: bool


@dataclass(frozen=True)
class Key:
    """A unique rule without the team. A primary key is widened by it; anything else would change its meaning."""

    table: str
    name: str
    columns: tuple[str, ...]
    primary: bool


@dataclass(frozen=True)
class Distribution:
    tables: tuple[str, ...]
    """What is spread, without what was spread before."""
    copied: bool
    narrow_keys: tuple[Key, ...]
    references: tuple[Reference, ...]
    functions: tuple[str, ...]

    @property
    def given_up(self) -> tuple[str, ...]:
        """References that would empty themselves: Citus has none of these, so an id may name what is gone."""
        return tuple(reference.name for reference in self.references if not reference.kept)

    @property
    def unfit(self) -> tuple[str, ...]:
        """What no distributed table may have, and nothing here can mend."""
        keys = tuple(key.name for key in self.narrow_keys if not key.primary)
        return (*keys, *(reference.name for reference in self.references if not reference.fits))


def planned(connection: Connection, already: frozenset[str] = frozenset()) -> Distribution:
    """What has to be done on a migrated database, whether or not Citus is there."""
    found = [str(name) for name in connection.scalars(TABLES, {"team": TEAM, "copied": COPIED})]
    new = tuple(name for name in found if name not in already)
    return Distribution(
        tables=tuple(name for name in new if name != COPIED),
        copied=COPIED in new,
        narrow_keys=tuple(_narrow_keys(connection, [name for name in new if name != COPIED])),
        references=tuple(one for one in _references(connection) if {one.table, one.target} & set(new)),
        functions=tuple(str(name) for name in connection.scalars(FUNCTIONS)),
    )


def _narrow_keys(connection: Connection, tables: list[str]) -> Iterator[Key]:
    for row in connection.execute(KEYS, {"tables": tables}):
        columns = tuple(str(column) for column in row.columns)
        if TEAM not in columns:
            yield Key(row.on_table, row.name, columns, bool(row.is_primary))


def _references(connection: Connection) -> Iterator[Reference]:
    for row in connection.execute(REFERENCES, {"team": TEAM}):
        fits = row.target == COPIED or (row.place is not None and row.place == row.target_place)
        yield Reference(row.on_table, row.target, row.name, row.definition, not row.empties, fits)


def statements(plan: Distribution) -> Iterator[str]:
    """References go first and come back last, so that the tables may be spread in any order."""
    for setting in CLUSTER_SETTINGS:
        yield f"set local {setting} = on"
        yield f"""
            select run_command_on_all_nodes(
                'alter database ' || quote_ident(current_database()) || ' set {setting} = on')
        """
    for reference in plan.references:
        yield f"alter table {reference.table} drop constraint {reference.name}"
    for key in plan.narrow_keys:
        columns = ", ".join(key.columns)
        yield f"alter table {key.table} drop constraint {key.name}"
        yield f"alter table {key.table} add constraint {key.name} primary key ({TEAM}, {columns})"
        yield f"create index {key.table}_order_idx on {key.table} ({columns})"
    if plan.copied:
        yield f"select create_reference_table('{COPIED}')"
    for table in sorted(plan.tables, key=lambda name: (name != FIRST, name)):
        beside = "none" if table == FIRST else FIRST
        yield f"select create_distributed_table('{table}', '{TEAM}', colocate_with => '{beside}')"
    for reference in plan.references:
        if reference.kept:
            yield f"alter table {reference.table} add constraint {reference.name} {reference.definition}"
    for function in plan.functions:
        yield f"select create_distributed_function('{function}')"


def distribute(dsn: str) -> Distribution:
    """Spread what is not spread yet, all of it or nothing; returns what was done. Safe to run again."""
    if (found := status(dsn)).state is not SchemaState.CURRENT:
        raise ConfigError(f"The schema is {found.state.value}.", hint="Run: agent-console db migrate")
    with refused(dsn), administration_engine(dsn).begin() as connection:
        if not connection.scalar(IS_THERE):
            raise ConfigError(
                "This database has no Citus, so there is nothing to spread the teams over.",
                hint="Run on the coordinator: create extension citus",
            )
        connection.execute(text("select pg_advisory_xact_lock(:lock)"), {"lock": MIGRATION_LOCK})
        already = frozenset(str(name) for name in connection.scalars(SPREAD))
        plan = planned(connection, already)
        if plan.unfit:
            raise ConfigError(
                f"These rules do not name the team: {', '.join(plan.unfit)}.",
                hint="They are none of this program's: drop them, or let team_id lead them.",
            )
        for statement in statements(plan) if plan.tables or plan.copied else ():
            connection.exec_driver_sql(statement)
        return plan
