-- Tokens, connectors, collections, sessions; and who may read which column.

create table registration_tokens (
    team_id uuid not null,
    id uuid not null,
    created_by_user_id uuid not null,
    token_hash text not null,
    token_prefix text not null,
    name text,
    is_used boolean default false not null,
    used_by_agent_id uuid,
    used_at timestamptz,
    client_nonce_hash text,
    expires_at timestamptz default now() + interval '24 hours' not null,
    revoked_at timestamptz,
    revoked_by_user_id uuid,
    created_at timestamptz default now() not null,
    constraint registration_tokens_pkey primary key (team_id, id),
    constraint registration_tokens_id_v7 check (get_byte(uuid_send(id), 6) >> 4 = 7),
    constraint registration_tokens_team_id_fkey foreign key (team_id) references teams (id),
    constraint registration_tokens_created_by_user_id_fkey foreign key (team_id, created_by_user_id) references users (team_id, id),
    constraint registration_tokens_revoked_by_user_id_fkey foreign key (team_id, revoked_by_user_id) references users (team_id, id),
    constraint registration_tokens_used_by_agent_id_fkey foreign key (team_id, used_by_agent_id) references agents (team_id, id),
    constraint registration_tokens_hash_uq unique (team_id, token_hash),
    constraint registration_tokens_agent_uq unique (team_id, used_by_agent_id),
    constraint registration_tokens_token_hash_sha256 check (token_hash ~ '^[0-9a-f]{64}$'),
    constraint registration_tokens_client_nonce_hash_sha256 check (client_nonce_hash ~ '^[0-9a-f]{64}$'),
    constraint registration_tokens_name_length check (char_length(name) <= 100),
    constraint registration_tokens_token_prefix_length check (char_length(token_prefix) <= 20),
    constraint registration_tokens_use_whole check (is_used = (used_by_agent_id is not null) and is_used = (used_at is not null)),
    constraint registration_tokens_life check (expires_at between created_at + interval '1 hour' and created_at + interval '168 hours')
);
create index registration_tokens_expires_idx on registration_tokens (team_id, expires_at, is_used);

create table worker_tokens (
    team_id uuid not null,
    id uuid not null,
    worker_id text not null,
    token_hash text not null,
    token_prefix text not null,
    description text,
    allowed_repositories jsonb,
    allowed_job_types jsonb,
    capabilities jsonb,
    is_active boolean default true not null,
    expires_at timestamptz,
    created_by_user_id uuid not null,
    updated_by_user_id uuid,
    created_at timestamptz default now() not null,
    updated_at timestamptz default now() not null,
    constraint worker_tokens_pkey primary key (team_id, id),
    constraint worker_tokens_id_v7 check (get_byte(uuid_send(id), 6) >> 4 = 7),
    constraint worker_tokens_team_id_fkey foreign key (team_id) references teams (id),
    constraint worker_tokens_created_by_user_id_fkey foreign key (team_id, created_by_user_id) references users (team_id, id),
    constraint worker_tokens_updated_by_user_id_fkey foreign key (team_id, updated_by_user_id) references users (team_id, id),
    constraint worker_tokens_hash_uq unique (team_id, token_hash),
    constraint worker_tokens_token_hash_sha256 check (token_hash ~ '^[0-9a-f]{64}$'),
    constraint worker_tokens_worker_id_given check (btrim(worker_id) <> '' and char_length(worker_id) <= 255),
    constraint worker_tokens_token_prefix_length check (char_length(token_prefix) <= 20),
    constraint worker_tokens_description_length check (char_length(description) <= 500),
    constraint worker_tokens_allowed_repositories_clean check (is_clean_list(allowed_repositories)),
    constraint worker_tokens_allowed_job_types_clean check (is_clean_list(allowed_job_types)),
    constraint worker_tokens_capabilities_clean check (is_clean_list(capabilities))
);
create index worker_tokens_worker_idx on worker_tokens (team_id, worker_id);

create table connectors (
    team_id uuid not null,
    id uuid not null,
    name text not null,
    type text not null,
    credential_location text default 'server' not null,
    credentials_encrypted bytea,
    credentials_key_id text,
    config jsonb default '{}' not null,
    created_by_user_id uuid not null,
    updated_by_user_id uuid,
    deleted_at timestamptz,
    created_at timestamptz default now() not null,
    updated_at timestamptz default now() not null,
    constraint connectors_pkey primary key (team_id, id),
    constraint connectors_id_v7 check (get_byte(uuid_send(id), 6) >> 4 = 7),
    constraint connectors_team_id_fkey foreign key (team_id) references teams (id),
    constraint connectors_created_by_user_id_fkey foreign key (team_id, created_by_user_id) references users (team_id, id),
    constraint connectors_updated_by_user_id_fkey foreign key (team_id, updated_by_user_id) references users (team_id, id),
    constraint connectors_name_given check (btrim(name) <> '' and char_length(name) <= 255),
    constraint connectors_type_known check (type in ('local', 's3', 'gcs', 'smb')),
    constraint connectors_credential_location_known check (credential_location in ('server', 'agent', 'pending')),
    constraint connectors_credentials_only_on_server check (credential_location = 'server' or (credentials_encrypted is null and credentials_key_id is null)),
    constraint connectors_config_object check (jsonb_typeof(config) = 'object')
);
create unique index connectors_name_uq on connectors (team_id, lower(name)) where deleted_at is null;

create table agent_connectors (
    team_id uuid not null,
    agent_id uuid not null,
    connector_id uuid not null,
    reported_at timestamptz default now() not null,
    constraint agent_connectors_pkey primary key (team_id, agent_id, connector_id),
    constraint agent_connectors_agent_id_fkey foreign key (team_id, agent_id) references agents (team_id, id) on delete cascade,
    constraint agent_connectors_connector_id_fkey foreign key (team_id, connector_id) references connectors (team_id, id) on delete cascade
);
create index agent_connectors_connector_idx on agent_connectors (team_id, connector_id, agent_id);

create table collections (
    team_id uuid not null,
    id uuid not null,
    name text not null,
    type text not null,
    location text,
    tool text,
    connector_id uuid,
    bound_agent_id uuid,
    auto_refresh boolean default true not null,
    refresh_interval_hours integer,
    last_refresh_at timestamptz,
    next_refresh_at timestamptz,
    created_by_user_id uuid not null,
    updated_by_user_id uuid,
    deleted_at timestamptz,
    created_at timestamptz default now() not null,
    updated_at timestamptz default now() not null,
    constraint collections_pkey primary key (team_id, id),
    constraint collections_id_v7 check (get_byte(uuid_send(id), 6) >> 4 = 7),
    constraint collections_team_id_fkey foreign key (team_id) references teams (id),
    constraint collections_connector_id_fkey foreign key (team_id, connector_id) references connectors (team_id, id),
    constraint collections_bound_agent_id_fkey foreign key (team_id, bound_agent_id) references agents (team_id, id),
    constraint collections_created_by_user_id_fkey foreign key (team_id, created_by_user_id) references users (team_id, id),
    constraint collections_updated_by_user_id_fkey foreign key (team_id, updated_by_user_id) references users (team_id, id),
    constraint collections_name_given check (btrim(name) <> '' and char_length(name) <= 255),
    constraint collections_type_known check (type in ('local', 's3', 'gcs', 'smb')),
    constraint collections_binding check (case type when 'local' then bound_agent_id is not null or deleted_at is not null when 'smb' then true else bound_agent_id is null end),
    constraint collections_interval check (refresh_interval_hours >= 1)
);
create index collections_agent_idx on collections (team_id, bound_agent_id, id) where bound_agent_id is not null;
create unique index collections_name_uq on collections (team_id, lower(name)) where deleted_at is null;

create table sessions (
    team_id uuid not null,
    id uuid not null,
    agent_id uuid not null,
    user_id uuid not null,
    status smallint default 1 not null,
    created_at timestamptz default now() not null,
    closed_at timestamptz,
    close_reason text,
    constraint sessions_pkey primary key (team_id, id),
    constraint sessions_id_v7 check (get_byte(uuid_send(id), 6) >> 4 = 7),
    constraint sessions_agent_id_fkey foreign key (team_id, agent_id) references agents (team_id, id),
    constraint sessions_user_id_fkey foreign key (team_id, user_id) references users (team_id, id),
    constraint sessions_status_known check (status in (1, 2)),
    constraint sessions_closed_has_time check ((status = 2) = (closed_at is not null))
);
create index sessions_agent_idx on sessions (team_id, agent_id, id);
create index sessions_open_idx on sessions (team_id, agent_id) where status = 1;

grant select, insert, update on teams, users, operator_tokens, settings, agents, agent_runtime, pool_counts,
    registration_tokens, worker_tokens, connectors, agent_connectors, collections, sessions
    to agent_console_app;
grant delete on settings, agent_runtime, agent_connectors, connectors to agent_console_app;
grant select on teams, users, settings, agent_runtime, pool_counts, agent_connectors, collections, sessions
    to agent_console_readonly;
-- The read-only role never sees a hash or a ciphertext.
grant select (team_id, id, user_id, name, token_prefix, expires_at, revoked_at, last_used_at,
              created_by_user_id, created_at)
    on operator_tokens to agent_console_readonly;
grant select (team_id, id, name, owner_user_id, system_user_id, system_user_kind, created_by_user_id,
              updated_by_user_id, worker_id, hostname, os_info, version, binary_checksum, api_key_prefix,
              previous_key_ends_at, connector_ref, profile, hosted, cpu_millicores, memory_mb,
              runtime_version, max_concurrent_jobs, over_limit, drained_at, drain_reason, drained_by_user_id, revoked_at,
              revocation_reason, revoked_by_user_id, deleted_at, created_at, updated_at)
    on agents to agent_console_readonly;
grant select (team_id, id, created_by_user_id, token_prefix, name, is_used, used_by_agent_id, used_at,
              expires_at, revoked_at, revoked_by_user_id, created_at)
    on registration_tokens to agent_console_readonly;
grant select (team_id, id, worker_id, token_prefix, description, allowed_repositories, allowed_job_types,
              capabilities, is_active, expires_at, created_by_user_id, updated_by_user_id, created_at,
              updated_at)
    on worker_tokens to agent_console_readonly;
grant select (team_id, id, name, type, credential_location, config, created_by_user_id, updated_by_user_id,
              deleted_at, created_at, updated_at)
    on connectors to agent_console_readonly;
