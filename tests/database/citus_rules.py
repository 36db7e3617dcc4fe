"""Citus' own functions on a plain PostgreSQL: they spread nothing, but refuse what Citus refuses.

The rules are those of its `create_distributed_table` and of its checks of foreign keys: a unique rule names the
column that a table is spread by; a reference between two spread tables names it on both sides at the same place
and empties nothing; a copied table refers to copied tables only.
"""

STAND_IN = """
    create table pg_dist_partition (logicalrelid regclass primary key, column_name text, beside text);
    create table said_to_all_nodes (command text);
    create table spread_functions (function regprocedure);

    create function run_command_on_all_nodes(command text) returns boolean language plpgsql as $$
    begin
        insert into said_to_all_nodes values (command);
        return true;
    end $$;

    create function create_distributed_function(function regprocedure) returns void language plpgsql as $$
    begin
        insert into spread_functions values (function);
    end $$;

    create function create_reference_table(t regclass) returns void language plpgsql as $$
    begin
        if exists (select from pg_constraint where conrelid = t and contype = 'f') then
            raise exception 'foreign keys from reference tables to distributed tables are not supported: %', t;
        end if;
        insert into pg_dist_partition values (t, null, 'copied');
    end $$;

    create function create_distributed_table(t regclass, by_column text, colocate_with text)
    returns void language plpgsql as $$
    declare
        narrow text;
    begin
        if colocate_with <> 'none'
           and not exists (select from pg_dist_partition where logicalrelid = colocate_with::regclass) then
            raise exception 'relation % is not distributed', colocate_with;
        end if;
        select i.indexrelid::regclass::text into narrow from pg_index i
         where i.indrelid = t and i.indisunique
           and not exists (select from pg_attribute a
                            where a.attrelid = t and a.attname = by_column and a.attnum = any(i.indkey));
        if narrow is not null then
            raise exception 'cannot create constraint on %: % does not include the partition column', t, narrow;
        end if;
        if exists (select from pg_trigger where tgrelid = t and not tgisinternal)
           and coalesce(current_setting('citus.enable_unsafe_triggers', true), 'off') <> 'on' then
            raise exception 'triggers are not supported on distributed tables: %', t;
        end if;
        insert into pg_dist_partition values (t, by_column, case colocate_with when 'none' then t::text
                                                            else colocate_with end);
    end $$;
"""

# Looked at when all is done: a reference that Citus would have refused when it was added again.
REFUSED_REFERENCES = """
    select c.conname::text
      from pg_constraint c
      left join pg_dist_partition t on t.logicalrelid = c.conrelid
      left join pg_dist_partition f on f.logicalrelid = c.confrelid
     where c.contype = 'f' and c.connamespace = 'public'::regnamespace
       and (t is null or f is null or c.confdeltype in ('n', 'd') or c.confupdtype in ('n', 'd', 'c')
            or f.column_name is not null and (
                 t.beside <> f.beside
                 or array_position(c.conkey, (select attnum from pg_attribute
                                               where attrelid = c.conrelid and attname = t.column_name))
                    is distinct from
                    array_position(c.confkey, (select attnum from pg_attribute
                                                where attrelid = c.confrelid and attname = f.column_name))))
"""
