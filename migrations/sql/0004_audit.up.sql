-- The audit trail in months, its seals, and the checkpoints that outlive a dropped month.

create sequence audit_log_seq as bigint;

create table audit_log (
    team_id uuid not null,
    id uuid not null,
    seq bigint default nextval('audit_log_seq') not null,
    xid xid8 default pg_current_xact_id() not null,
    actor_type text not null,
    actor_user_id uuid,
    actor_agent_id uuid,
    actor_label text not null,
    action text not null,
    resource_type text not null,
    resource_id text not null,
    thread_id uuid,
    run_id uuid,
    decision text,
    reason text,
    ip inet,
    user_agent text,
    metadata jsonb default '{}' not null,
    form smallint default 1 not null,
    event_hash bytea not null,
    created_at timestamptz default now() not null,
    constraint audit_log_pkey primary key (team_id, id, created_at),
    constraint audit_log_id_v7 check (get_byte(uuid_send(id), 6) >> 4 = 7),
    constraint audit_log_actor_type_known check (actor_type in ('human', 'agent', 'system')),
    constraint audit_log_actor_fits check ((actor_type = 'human' and actor_user_id is not null and actor_agent_id is null) or (actor_type = 'agent' and actor_agent_id is not null and actor_user_id is null) or (actor_type = 'system' and actor_user_id is null and actor_agent_id is null)),
    constraint audit_log_action_form check (action ~ '^[a-z0-9_]+(\.[a-z0-9_]+)+$'),
    constraint audit_log_resource_given check (btrim(resource_type) <> '' and btrim(resource_id) <> ''),
    constraint audit_log_decision_known check (decision in ('allow', 'block', 'error')),
    constraint audit_log_metadata_object check (jsonb_typeof(metadata) = 'object'),
    constraint audit_log_place_of_humans check (actor_type = 'human' or (ip is null and user_agent is null)),
    constraint audit_log_event_hash_sha256 check (octet_length(event_hash) = 32)
) partition by range (created_at);
create index audit_log_action_idx on audit_log (team_id, action, seq desc);
create index audit_log_actor_idx on audit_log (team_id, actor_user_id, seq desc) where actor_user_id is not null;
create index audit_log_agent_idx on audit_log (team_id, actor_agent_id, seq desc) where actor_agent_id is not null;
create index audit_log_order_idx on audit_log (team_id, xid, seq);
create index audit_log_resource_idx on audit_log (team_id, resource_type, resource_id, seq desc);
create index audit_log_run_idx on audit_log (team_id, run_id, seq desc) where run_id is not null;
create index audit_log_seq_idx on audit_log (team_id, seq desc);
create index audit_log_thread_idx on audit_log (team_id, thread_id, seq desc) where thread_id is not null;

create table audit_seals (
    team_id uuid not null,
    position bigint not null,
    audit_id uuid not null,
    audit_created_at timestamptz not null,
    audit_seq bigint not null,
    audit_xid xid8 not null,
    event_hash bytea not null,
    prev_hash bytea not null,
    hash bytea not null,
    sealed_at timestamptz default now() not null,
    constraint audit_seals_pkey primary key (team_id, position),
    constraint audit_seals_audit_uq unique (team_id, audit_id),
    constraint audit_seals_prev_uq unique (team_id, prev_hash),
    constraint audit_seals_position_positive check (position >= 1),
    constraint audit_seals_hashes_sha256 check (octet_length(event_hash) = 32 and octet_length(prev_hash) = 32 and octet_length(hash) = 32)
);

-- Where a team's chain ends. Every act up to (audit_xid, audit_seq) in the order of transactions is sealed; those
-- numbered up to since_seq were written in another cluster, whose transactions were counted apart.
create table audit_heads (
    team_id uuid not null,
    position bigint not null,
    hash bytea not null,
    audit_xid xid8 not null,
    audit_seq bigint not null,
    highest_seq bigint not null,
    since_seq bigint default 0 not null,
    sealed_at timestamptz default now() not null,
    constraint audit_heads_pkey primary key (team_id),
    constraint audit_heads_order check (position >= 0 and highest_seq >= since_seq and since_seq >= 0),
    constraint audit_heads_hash_sha256 check (octet_length(hash) = 32)
);

create table audit_checkpoints (
    team_id uuid not null,
    id uuid not null,
    month date not null,
    first_position bigint not null,
    last_position bigint not null,
    last_hash bytea not null,
    rows integer not null,
    created_at timestamptz default now() not null,
    constraint audit_checkpoints_pkey primary key (team_id, id),
    constraint audit_checkpoints_id_v7 check (get_byte(uuid_send(id), 6) >> 4 = 7),
    constraint audit_checkpoints_month_uq unique (team_id, month),
    constraint audit_checkpoints_month_start check (extract(day from month) = 1),
    constraint audit_checkpoints_last_hash_sha256 check (octet_length(last_hash) = 32),
    constraint audit_checkpoints_order check (last_position >= first_position - 1 and rows >= 0)
);

create trigger audit_log_append_only before update or delete on audit_log
    for each row execute function refuse_rewrite();
create trigger audit_seals_append_only before update or delete on audit_seals
    for each row execute function refuse_rewrite();
create trigger audit_checkpoints_append_only before update or delete on audit_checkpoints
    for each row execute function refuse_rewrite();

-- SHA-256 over form 1 of a row, as domain/audit.py has it: the binary record of its values, each with its type and its
-- length, texts in UTF-8, the metadata as a record of name, kind and value for each name in the order of its bytes.
create function audit_event_hash(
    form smallint, team_id uuid, id uuid, created_at timestamptz, actor_type text, actor_user_id uuid,
    actor_agent_id uuid, actor_label text, action text, resource_type text, resource_id text, thread_id uuid,
    run_id uuid, decision text, reason text, ip inet, user_agent text, metadata jsonb
) returns bytea
language sql stable parallel safe
return sha256(record_send(row(
    form, team_id, id, created_at, convert_to(actor_type, 'UTF8'), actor_user_id, actor_agent_id,
    convert_to(actor_label, 'UTF8'), convert_to(action, 'UTF8'), convert_to(resource_type, 'UTF8'),
    convert_to(resource_id, 'UTF8'), thread_id, run_id, convert_to(decision, 'UTF8'), convert_to(reason, 'UTF8'), ip,
    convert_to(user_agent, 'UTF8'),
    (select string_agg(record_send(row(
                convert_to(name, 'UTF8'), convert_to(jsonb_typeof(metadata -> name), 'UTF8'),
                convert_to(metadata ->> name, 'UTF8'))), ''::bytea order by name collate "C")
       from (select jsonb_object_keys(metadata) as name) as names)
)));

-- Writes an act into the trail from inside the database, in one statement with what it tells of: the same row that postgres/audit/writing.py writes.
create function append_audit(
    team_id uuid, actor_type text, actor_user_id uuid, actor_agent_id uuid, actor_label text, action text,
    resource_type text, resource_id text, metadata jsonb default '{}', thread_id uuid default null,
    run_id uuid default null, decision text default null, reason text default null, ip inet default null,
    user_agent text default null
) returns uuid
language plpgsql as $$
declare
    audit_id uuid := new_id();
begin
    if jsonb_path_exists(metadata, 'strict $.* ? (@.type() == "object" || @.type() == "array")') then
        raise exception 'an act carries plain values only' using errcode = 'check_violation';
    end if;
    insert into audit_log (team_id, id, actor_type, actor_user_id, actor_agent_id, actor_label, action,
                           resource_type, resource_id, thread_id, run_id, decision, reason, ip, user_agent, metadata,
                           form, event_hash, created_at)
    values (team_id, audit_id, actor_type, actor_user_id, actor_agent_id, actor_label, action, resource_type,
            resource_id, thread_id, run_id, decision, reason, ip, user_agent, metadata, 1,
            audit_event_hash(1::smallint, team_id, audit_id, now(), actor_type, actor_user_id, actor_agent_id,
                             actor_label, action, resource_type, resource_id, thread_id, run_id, decision, reason,
                             ip, user_agent, metadata),
            now());
    return audit_id;
end
$$;
revoke execute on function append_audit from public;
grant execute on function append_audit to agent_console_app;

-- Makes the partitions of this month and of the months ahead. The app role may not create tables, but a
-- missing month would fail every action, so it may call this.
create function make_audit_months(ahead integer default 3) returns integer
language plpgsql security definer set search_path = public, pg_temp as $$
declare
    month timestamptz;
    its_table text;
    made integer := 0;
begin
    for step in 0 .. least(greatest(ahead, 0), 24) loop
        month := date_trunc('month', now() at time zone 'UTC' + make_interval(months => step)) at time zone 'UTC';
        its_table := 'audit_log_' || to_char(month at time zone 'UTC', 'YYYY_MM');
        continue when to_regclass(its_table) is not null;
        -- Only who misses a month waits: whoever drops one holds this for as long as it reads all of it.
        perform pg_advisory_xact_lock(hashtext('agent_console.audit_months'));
        if to_regclass(its_table) is null then
            execute format(
                'create table %I partition of audit_log for values from (%L) to (%L)',
                its_table,
                month,
                (month at time zone 'UTC' + interval '1 month') at time zone 'UTC'
            );
            made := made + 1;
        end if;
    end loop;
    return made;
end
$$;
-- Seals what a team did, in the order of its transactions: a transaction older than every open one can add no further
-- act, so nothing can come before what is sealed here. audit_log_order_idx leads to what is not sealed yet. Only the
-- owner may write seals, and this is the only way to have one written.
create function seal_audit(team uuid, at_most integer) returns integer
language plpgsql security definer set search_path = public, pg_temp as $$
declare
    head audit_heads;
    act record;
    link bytea;
    elsewhere boolean;
    sealed integer := 0;
begin
    if not pg_try_advisory_xact_lock(hashtext('agent_console.seals'), hashtext(team::text)) then
        return 0;
    end if;
    insert into audit_heads (team_id, position, hash, audit_xid, audit_seq, highest_seq)
    select team, 0, decode(repeat('00', 32), 'hex'), '0', 0, 0
     where not exists (select from audit_heads h where h.team_id = team)
    on conflict do nothing;
    select h.* into head from audit_heads h where h.team_id = team for update;
    -- A transaction that is still to come has ended already: the trail was restored into a cluster that counts anew.
    elsewhere := head.audit_xid >= pg_snapshot_xmax(pg_current_snapshot());
    for act in
        select a.id, a.created_at, a.seq, a.xid, a.event_hash
          from audit_log a
         where a.team_id = team and (a.xid, a.seq) > (head.audit_xid, head.audit_seq) and a.seq > head.since_seq
           -- One put in under the id of a sealed act has no place in the chain; a proof names it.
           and not exists (select from audit_seals s where s.team_id = team and s.audit_id = a.id)
           and (elsewhere or a.xid < pg_snapshot_xmin(pg_current_snapshot()))
         order by a.xid, a.seq
         limit at_most
    loop
        head.position := head.position + 1;
        link := sha256(record_send(row(team, head.position, act.id, act.created_at, act.seq, act.xid,
                                       act.event_hash, head.hash, now())));
        insert into audit_seals (team_id, position, audit_id, audit_created_at, audit_seq, audit_xid, event_hash,
                                 prev_hash, hash, sealed_at)
        values (team, head.position, act.id, act.created_at, act.seq, act.xid, act.event_hash, head.hash, link, now());
        head.hash := link;
        head.audit_xid := act.xid;
        head.audit_seq := act.seq;
        head.highest_seq := greatest(head.highest_seq, act.seq);
        sealed := sealed + 1;
    end loop;
    if elsewhere and sealed < at_most then
        head.since_seq := head.highest_seq;
        head.audit_seq := 0;
        select least(min(a.xid), pg_snapshot_xmin(pg_current_snapshot())) into head.audit_xid
          from audit_log a where a.team_id = team and a.seq > head.since_seq;
    elsif sealed = 0 then
        return 0;
    end if;
    update audit_heads h
       set position = head.position, hash = head.hash, audit_xid = head.audit_xid, audit_seq = head.audit_seq,
           highest_seq = head.highest_seq, since_seq = head.since_seq, sealed_at = now()
     where h.team_id = team;
    return sealed;
end
$$;
revoke execute on function seal_audit from public;
grant execute on function seal_audit to agent_console_app;

-- The first moment that some team still keeps: a month holds the acts of all, so the one that keeps them longest
-- decides.
create function audit_kept_since() returns timestamptz
language sql stable security definer set search_path = public, pg_temp as $$
    select now() - make_interval(days => coalesce(max(coalesce((s.value #>> '{}')::integer, 90)), 90))
      from teams t
      left join settings s on s.team_id = t.id and s.name = 'audit_retention_days'
$$;

-- Drops the oldest month when all of it is older than any team keeps, and tells for each team what it held. What is cut
-- off stays provable by the checkpoint: the hash that the rest of the chain begins with. It may be called by who may
-- not drop anything: what it drops is decided by the teams' own setting alone. The caller writes the act down.
create function prune_audit() returns table (
    team_id uuid, checkpoint uuid, month date, first_position bigint, last_position bigint, last_hash bytea,
    rows integer
)
language plpgsql security definer set search_path = public, pg_temp as $$
declare
    oldest name;
    began date;
    ends timestamptz;
    unsealed uuid;
    of_team record;
    before bigint;
    cut bigint;
    cut_hash bytea;
    made uuid;
begin
    perform pg_advisory_xact_lock(hashtext('agent_console.audit_months'));
    select c.relname, to_date(right(c.relname, 7), 'YYYY_MM') into oldest, began
      from pg_inherits i join pg_class c on c.oid = i.inhrelid
     where i.inhparent = 'audit_log'::regclass
     order by c.relname
     limit 1;
    ends := (began + interval '1 month') at time zone 'UTC';
    if oldest is null or ends > audit_kept_since() then
        return;
    end if;
    execute format('select a.team_id from %I a where not exists (select from audit_seals s
                    where s.team_id = a.team_id and s.audit_id = a.id) limit 1', oldest) into unsealed;
    if unsealed is not null then
        raise exception '% holds acts that are not sealed', oldest using errcode = 'object_not_in_prerequisite_state';
    end if;
    for of_team in execute format('select a.team_id as id, count(*)::integer as acts from %I a group by 1', oldest) loop
        select coalesce(max(c.last_position), 0) into before
          from audit_checkpoints c where c.team_id = of_team.id;
        select coalesce(
                   (select s.position - 1 from audit_seals s
                     where s.team_id = of_team.id and s.position > before and s.audit_created_at >= ends
                     order by s.position limit 1),
                   (select h.position from audit_heads h where h.team_id = of_team.id))
          into cut;
        select coalesce(
                   (select s.hash from audit_seals s where s.team_id = of_team.id and s.position = cut),
                   (select c.last_hash from audit_checkpoints c
                     where c.team_id = of_team.id and c.last_position = cut order by c.month desc limit 1),
                   decode(repeat('00', 32), 'hex'))
          into cut_hash;
        insert into audit_checkpoints (team_id, id, month, first_position, last_position, last_hash, rows)
        values (of_team.id, new_id(), began, before + 1, cut, cut_hash, of_team.acts)
        returning id into made;
        return query select of_team.id, made, began, before + 1, cut, cut_hash, of_team.acts;
    end loop;
    execute format('drop table %I', oldest);
end
$$;
revoke execute on function prune_audit from public;
grant execute on function prune_audit to agent_console_app;

-- Removes seals that lie before the last checkpoint of their team, a part at a time: the rest of the chain begins
-- there.
create function prune_audit_seals(at_most integer) returns bigint
language plpgsql security definer set search_path = public, pg_temp as $$
declare
    pruned bigint;
begin
    perform set_config('agent_console.retention', 'on', true);
    with cut as (
        select c.team_id, max(c.last_position) as position from audit_checkpoints c group by c.team_id
    ), old as (
        select s.team_id, s.position
          from cut
          cross join lateral (select s.team_id, s.position from audit_seals s
                               where s.team_id = cut.team_id and s.position <= cut.position
                               order by s.position limit at_most) as s
         limit at_most
    ), gone as (
        delete from audit_seals s using old o where s.team_id = o.team_id and s.position = o.position returning 1
    )
    select count(*) into pruned from gone;
    perform set_config('agent_console.retention', 'off', true);
    return pruned;
end
$$;
revoke execute on function prune_audit_seals from public;
grant execute on function prune_audit_seals to agent_console_app;

revoke execute on function make_audit_months(integer) from public;
grant execute on function make_audit_months(integer) to agent_console_app, agent_console_maintenance;
select make_audit_months();

grant usage on sequence audit_log_seq to agent_console_app;
-- Number and transaction of a row are the database's own word: nobody else may give them.
grant insert (team_id, id, actor_type, actor_user_id, actor_agent_id, actor_label, action, resource_type,
              resource_id, thread_id, run_id, decision, reason, ip, user_agent, metadata, form, event_hash,
              created_at)
    on audit_log to agent_console_app;
grant select on audit_log to agent_console_app;
grant select on audit_seals, audit_heads, audit_checkpoints to agent_console_app;
grant select on audit_log, audit_seals, audit_heads, audit_checkpoints to agent_console_readonly;
grant delete on audit_log, audit_seals to agent_console_maintenance;
