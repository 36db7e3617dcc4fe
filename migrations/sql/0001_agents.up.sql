-- Teams, people, settings, agents, and how many agents are in each state.
-- Every key leads with team_id and every foreign key carries it: no row can refer to another team's.

-- A JSON array of trimmed, non-empty, distinct strings; null passes, as in every check.
create function is_clean_list(list jsonb) returns boolean
language sql immutable parallel safe
return case
    when jsonb_typeof(list) <> 'array' then false
    else not exists (
            select from jsonb_array_elements(list) as item
            where jsonb_typeof(item) <> 'string'
               or btrim(item #>> '{}') = '' or btrim(item #>> '{}') <> item #>> '{}'
        )
        and jsonb_array_length(list) = (select count(distinct item) from jsonb_array_elements(list) as item)
end;

create table teams (
    id uuid not null,
    slug text not null,
    name text not null,
    pause_mode text,
    pause_reason text,
    paused_at timestamptz,
    paused_by_user_id uuid,
    created_at timestamptz default now() not null,
    updated_at timestamptz default now() not null,
    constraint teams_pkey primary key (id),
    constraint teams_slug_key unique (slug),
    constraint teams_id_v7 check (get_byte(uuid_send(id), 6) >> 4 = 7),
    constraint teams_slug_form check (slug ~ '^[a-z0-9][a-z0-9-]{0,62}$'),
    constraint teams_name_given check (btrim(name) <> '' and char_length(name) <= 255),
    constraint teams_pause_mode_known check (pause_mode in ('drain', 'quiesce')),
    constraint teams_pause_whole check ((paused_at is null) = (pause_mode is null) and (paused_at is null or btrim(coalesce(pause_reason, '')) <> ''))
);

create table users (
    team_id uuid not null,
    id uuid not null,
    kind text default 'human' not null,
    role text,
    subject text,
    email text,
    full_name text not null,
    is_active boolean default true not null,
    last_seen_at timestamptz,
    created_by_user_id uuid,
    updated_by_user_id uuid,
    created_at timestamptz default now() not null,
    updated_at timestamptz default now() not null,
    constraint users_pkey primary key (team_id, id),
    constraint users_id_v7 check (get_byte(uuid_send(id), 6) >> 4 = 7),
    constraint users_team_id_fkey foreign key (team_id) references teams (id),
    constraint users_created_by_user_id_fkey foreign key (team_id, created_by_user_id) references users (team_id, id),
    constraint users_updated_by_user_id_fkey foreign key (team_id, updated_by_user_id) references users (team_id, id),
    constraint users_kind_uq unique (team_id, id, kind),
    constraint users_kind_known check (kind in ('human', 'system')),
    constraint users_role_known check (role in ('admin', 'operator', 'viewer')),
    constraint users_kind_fits check ((kind = 'human' and email is not null and role is not null) or (kind = 'system' and role is null and subject is null)),
    constraint users_email_given check (btrim(email) <> '' and char_length(email) <= 320),
    constraint users_full_name_given check (btrim(full_name) <> '' and char_length(full_name) <= 300)
);
create unique index users_email_uq on users (team_id, lower(email)) where email is not null;
create index users_people_idx on users (team_id, id) where kind = 'human';
create unique index users_subject_uq on users (team_id, subject) where subject is not null;

create table operator_tokens (
    team_id uuid not null,
    id uuid not null,
    user_id uuid not null,
    name text,
    token_hash text not null,
    token_prefix text not null,
    expires_at timestamptz,
    revoked_at timestamptz,
    last_used_at timestamptz,
    created_by_user_id uuid not null,
    created_at timestamptz default now() not null,
    constraint operator_tokens_pkey primary key (team_id, id),
    constraint operator_tokens_id_v7 check (get_byte(uuid_send(id), 6) >> 4 = 7),
    constraint operator_tokens_team_id_fkey foreign key (team_id) references teams (id),
    constraint operator_tokens_user_id_fkey foreign key (team_id, user_id) references users (team_id, id),
    constraint operator_tokens_created_by_user_id_fkey foreign key (team_id, created_by_user_id) references users (team_id, id),
    constraint operator_tokens_hash_uq unique (team_id, token_hash),
    constraint operator_tokens_token_hash_sha256 check (token_hash ~ '^[0-9a-f]{64}$'),
    constraint operator_tokens_name_length check (char_length(name) <= 100),
    constraint operator_tokens_token_prefix_length check (char_length(token_prefix) <= 20)
);
create index operator_tokens_user_idx on operator_tokens (team_id, user_id, id);

create table settings (
    team_id uuid not null,
    name text not null,
    value jsonb not null,
    updated_by_user_id uuid,
    updated_at timestamptz default now() not null,
    constraint settings_pkey primary key (team_id, name),
    constraint settings_team_id_fkey foreign key (team_id) references teams (id),
    constraint settings_updated_by_user_id_fkey foreign key (team_id, updated_by_user_id) references users (team_id, id),
    constraint settings_name_given check (btrim(name) <> '' and char_length(name) <= 100)
);

create table agents (
    team_id uuid not null,
    id uuid not null,
    name text not null,
    owner_user_id uuid not null,
    system_user_id uuid not null,
    -- Fixed, so that the foreign key can ask for a user of this kind.
    system_user_kind text generated always as ('system') stored not null,
    created_by_user_id uuid not null,
    updated_by_user_id uuid,
    worker_id text not null,
    hostname text,
    os_info text,
    version text,
    binary_checksum text,
    api_key_hash text not null,
    api_key_prefix text not null,
    previous_key_hash text,
    previous_key_ends_at timestamptz,
    connector_ref text default 'pull' not null,
    profile jsonb default '{}' not null,
    hosted boolean default false not null,
    cpu_millicores integer default 500 not null,
    memory_mb integer default 512 not null,
    runtime_version text default 'latest' not null,
    max_concurrent_jobs integer default 1 not null,
    -- It may hold more than its limit. While it does not, whoever ends one job may take one without counting.
    over_limit boolean default false not null,
    drained_at timestamptz,
    drain_reason text,
    drained_by_user_id uuid,
    revoked_at timestamptz,
    revocation_reason text,
    revoked_by_user_id uuid,
    deleted_at timestamptz,
    created_at timestamptz default now() not null,
    updated_at timestamptz default now() not null,
    constraint agents_pkey primary key (team_id, id),
    constraint agents_id_v7 check (get_byte(uuid_send(id), 6) >> 4 = 7),
    constraint agents_team_id_fkey foreign key (team_id) references teams (id),
    constraint agents_owner_user_id_fkey foreign key (team_id, owner_user_id) references users (team_id, id),
    constraint agents_system_user_id_fkey foreign key (team_id, system_user_id, system_user_kind) references users (team_id, id, kind),
    constraint agents_created_by_user_id_fkey foreign key (team_id, created_by_user_id) references users (team_id, id),
    constraint agents_updated_by_user_id_fkey foreign key (team_id, updated_by_user_id) references users (team_id, id),
    constraint agents_drained_by_user_id_fkey foreign key (team_id, drained_by_user_id) references users (team_id, id),
    constraint agents_revoked_by_user_id_fkey foreign key (team_id, revoked_by_user_id) references users (team_id, id),
    constraint agents_system_user_uq unique (team_id, system_user_id),
    constraint agents_api_key_hash_uq unique (team_id, api_key_hash),
    constraint agents_name_given check (btrim(name) <> '' and char_length(name) <= 255),
    constraint agents_worker_id_given check (btrim(worker_id) <> '' and char_length(worker_id) <= 255),
    constraint agents_hostname_length check (char_length(hostname) <= 255),
    constraint agents_os_info_length check (char_length(os_info) <= 255),
    constraint agents_version_length check (char_length(version) <= 50),
    constraint agents_binary_checksum_sha256 check (binary_checksum ~ '^[0-9a-f]{64}$'),
    constraint agents_api_key_hash_sha256 check (api_key_hash ~ '^[0-9a-f]{64}$'),
    constraint agents_previous_key_hash_sha256 check (previous_key_hash ~ '^[0-9a-f]{64}$'),
    constraint agents_api_key_prefix_length check (char_length(api_key_prefix) <= 20),
    constraint agents_connector_ref_given check (btrim(connector_ref) <> '' and char_length(connector_ref) <= 500),
    constraint agents_profile_object check (jsonb_typeof(profile) = 'object'),
    constraint agents_cpu_bounds check (cpu_millicores between 100 and 4000),
    constraint agents_memory_bounds check (memory_mb between 128 and 8192),
    constraint agents_runtime_version_given check (btrim(runtime_version) <> '' and char_length(runtime_version) <= 100),
    constraint agents_concurrency_bounds check (max_concurrent_jobs between 1 and 1000),
    constraint agents_revoked_needs_reason check (revoked_at is null or btrim(coalesce(revocation_reason, '')) <> ''),
    constraint agents_previous_key_whole check ((previous_key_hash is null) = (previous_key_ends_at is null))
);
create unique index agents_name_uq on agents (team_id, lower(name)) where deleted_at is null;
create index agents_owner_idx on agents (team_id, owner_user_id, id) where deleted_at is null;
create index agents_team_idx on agents (team_id, id) where deleted_at is null;
create unique index agents_worker_id_uq on agents (team_id, worker_id) where deleted_at is null;

create table agent_runtime (
    team_id uuid not null,
    agent_id uuid not null,
    presence text default 'unknown' not null,
    error_message text,
    last_heartbeat_at timestamptz,
    -- The minute in which it was last heard. Only every second beat moves it, the others touch no index; and each
    -- agent's minutes begin at a second of its own, so that a fleet does not move all at once.
    heard_minute timestamptz generated always as (date_bin('60 seconds', last_heartbeat_at, to_timestamp(get_byte(uuid_send(agent_id), 15) % 60))) stored,
    capabilities jsonb default '[]' not null,
    metrics jsonb default '{}' not null,
    lifecycle smallint,
    lifecycle_changed_at timestamptz,
    last_used_at timestamptz,
    started_at timestamptz,
    constraint agent_runtime_pkey primary key (team_id, agent_id),
    constraint agent_runtime_agent_id_fkey foreign key (team_id, agent_id) references agents (team_id, id),
    constraint agent_runtime_presence_known check (presence in ('unknown', 'online', 'offline', 'error')),
    -- Else nobody could tell when it falls silent.
    constraint agent_runtime_living_heard check (presence not in ('online', 'error') or last_heartbeat_at is not null),
    constraint agent_runtime_lifecycle_known check (lifecycle between 1 and 7),
    constraint agent_runtime_error_only_in_error check (error_message is null or presence = 'error' or coalesce(lifecycle = 7, false)),
    constraint agent_runtime_capabilities_array check (jsonb_typeof(capabilities) = 'array'),
    constraint agent_runtime_metrics_object check (jsonb_typeof(metrics) = 'object')
)
 with (fillfactor = 70);
create index agent_runtime_heard_idx on agent_runtime (team_id, heard_minute) where presence in ('online', 'error');
create index agent_runtime_lifecycle_idx on agent_runtime (team_id, lifecycle, agent_id) where lifecycle is not null;
create index agent_runtime_presence_idx on agent_runtime (team_id, presence, agent_id);

-- How many agents of a team are in each state, revoked and deleted ones left out, so that the badge never counts
-- them. Triggers keep it whoever writes. Each database session adds to a row of its own, so that agents that come
-- and go at the same time do not wait for each other; a single row may be below zero, their sum is the truth.
create table pool_counts (
    team_id uuid not null,
    shard smallint not null,
    online integer default 0 not null,
    error integer default 0 not null,
    offline integer default 0 not null,
    unknown integer default 0 not null,
    constraint pool_counts_pkey primary key (team_id, shard),
    constraint pool_counts_team_id_fkey foreign key (team_id) references teams (id),
    constraint pool_counts_shard_bounds check (shard between 0 and 15)
)
 with (fillfactor = 50);

create function add_to_pool(team uuid, seen text, agents bigint) returns void
language sql as $$
    insert into pool_counts as c (team_id, shard, online, error, offline, unknown)
    values (team, pg_backend_pid() % 16,
            case seen when 'online' then agents else 0 end, case seen when 'error' then agents else 0 end,
            case seen when 'offline' then agents else 0 end, case seen when 'unknown' then agents else 0 end)
    on conflict (team_id, shard) do update
       set online = c.online + excluded.online, error = c.error + excluded.error,
           offline = c.offline + excluded.offline, unknown = c.unknown + excluded.unknown
$$;

-- Both count once for a whole statement, be it of one agent or of all: a count that was written again for each of
-- them would leave as many dead versions for the next one to walk. The plans are kept from a session's first
-- statement, so nothing here is a join, which would be right for the one and ruinous for the other.
create function count_newcomers() returns trigger
language plpgsql as $$
begin
    perform add_to_pool(n.team_id, n.presence, count(*))
       from newcomers n
      where (select a.revoked_at is null and a.deleted_at is null
               from agents a
              where a.team_id = n.team_id and a.id = n.agent_id)
      group by n.team_id, n.presence;
    return null;
end
$$;

-- Nearly every statement is a heartbeat of agents that stay what they are, so that is asked first.
create function count_presence() returns trigger
language plpgsql as $$
begin
    if exists (select team_id, agent_id, presence from after
               except
               select team_id, agent_id, presence from before) then
        perform add_to_pool(moved.team_id, moved.presence, sum(moved.step)::bigint)
           from (select team_id, agent_id, presence, sum(step) as step
                   from (select team_id, agent_id, presence, 1 as step from after
                         union all
                         select team_id, agent_id, presence, -1 from before) as seen
                  group by team_id, agent_id, presence
                 having sum(step) <> 0) as moved
          where (select a.revoked_at is null and a.deleted_at is null
                   from agents a
                  where a.team_id = moved.team_id and a.id = moved.agent_id)
          group by moved.team_id, moved.presence;
    end if;
    return null;
end
$$;

-- Takes the lock that a heartbeat takes, so that both see what the other did.
create function count_membership() returns trigger
language plpgsql as $$
declare
    seen text;
begin
    select r.presence into seen from agent_runtime r
     where r.team_id = new.team_id and r.agent_id = new.id
       for no key update;
    if found and new.revoked_at is null and new.deleted_at is null then
        perform add_to_pool(new.team_id, seen, 1);
    elsif found then
        perform add_to_pool(new.team_id, seen, -1);
    end if;
    return null;
end
$$;

create trigger agent_runtime_counted_first after insert on agent_runtime
    referencing new table as newcomers for each statement execute function count_newcomers();
create trigger agent_runtime_counted after update on agent_runtime
    referencing old table as before new table as after for each statement execute function count_presence();
create function limit_lowered() returns trigger language plpgsql as $$
begin
    new.over_limit := true;
    return new;
end
$$;
create trigger agents_limit_lowered before update of max_concurrent_jobs on agents
    for each row when (new.max_concurrent_jobs < old.max_concurrent_jobs) execute function limit_lowered();

create trigger agents_counted after update of revoked_at, deleted_at on agents
    for each row when ((old.revoked_at is null and old.deleted_at is null) <> (new.revoked_at is null and new.deleted_at is null))
    execute function count_membership();
