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
    constraint audit_log_event_hash_sha256 check (octet_length(event_hash) = 32)
) partition by range (created_at);
create index audit_log_action_idx on audit_log (team_id, action, seq desc);
create index audit_log_actor_idx on audit_log (team_id, actor_user_id, seq desc) where actor_user_id is not null;
create index audit_log_resource_idx on audit_log (team_id, resource_type, resource_id, seq desc);
create index audit_log_run_idx on audit_log (team_id, run_id, seq desc) where run_id is not null;
create index audit_log_seq_idx on audit_log (team_id, seq desc);
create index audit_log_thread_idx on audit_log (team_id, thread_id, seq desc) where thread_id is not null;

create table audit_seals (
    team_id uuid not null,
    position bigint not null,
    audit_id uuid not null,
    audit_created_at timestamptz not null,
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

-- Makes the partitions of this month and of the months ahead. The app role may not create tables, but a
-- missing month would fail every action, so it may call this.
create function make_audit_months(ahead integer default 3) returns integer
language plpgsql security definer set search_path = public, pg_temp as $$
declare
    month timestamptz;
    made integer := 0;
begin
    perform pg_advisory_xact_lock(hashtext('agent_console.audit_months'));
    for step in 0 .. least(greatest(ahead, 0), 24) loop
        month := date_trunc('month', now() at time zone 'UTC' + make_interval(months => step)) at time zone 'UTC';
        if to_regclass('audit_log_' || to_char(month at time zone 'UTC', 'YYYY_MM')) is null then
            execute format(
                'create table %I partition of audit_log for values from (%L) to (%L)',
                'audit_log_' || to_char(month at time zone 'UTC', 'YYYY_MM'),
                month,
                (month at time zone 'UTC' + interval '1 month') at time zone 'UTC'
            );
            made := made + 1;
        end if;
    end loop;
    return made;
end
$$;
revoke execute on function make_audit_months(integer) from public;
grant execute on function make_audit_months(integer) to agent_console_app, agent_console_maintenance;
select make_audit_months();

grant usage on sequence audit_log_seq to agent_console_app;
grant select, insert on audit_log, audit_seals, audit_checkpoints to agent_console_app;
grant select on audit_log, audit_seals, audit_checkpoints to agent_console_readonly;
grant delete on audit_log, audit_seals to agent_console_maintenance;
