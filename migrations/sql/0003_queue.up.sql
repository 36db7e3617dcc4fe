-- Lanes, jobs, events, results.

-- Rows that tell a story are never rewritten. Retention, done by the maintenance role, may delete when it
-- says so for its own transaction; nobody may update.
create function refuse_rewrite() returns trigger
language plpgsql as $$
begin
    if tg_op = 'DELETE' and current_setting('agent_console.retention', true) = 'on' then
        return old;
    end if;
    raise exception '% is append-only', tg_table_name using errcode = 'insufficient_privilege';
end
$$;

create table lanes (
    team_id uuid not null,
    id uuid not null,
    key text not null,
    bound_agent_id uuid,
    required_capabilities jsonb default '[]' not null,
    job_type text,
    repository text,
    connector_id uuid,
    created_at timestamptz default now() not null,
    constraint lanes_pkey primary key (team_id, id),
    constraint lanes_id_v7 check (get_byte(uuid_send(id), 6) >> 4 = 7),
    constraint lanes_team_id_fkey foreign key (team_id) references teams (id),
    constraint lanes_bound_agent_id_fkey foreign key (team_id, bound_agent_id) references agents (team_id, id),
    constraint lanes_connector_id_fkey foreign key (team_id, connector_id) references connectors (team_id, id) on delete cascade,
    constraint lanes_key_uq unique (team_id, key),
    constraint lanes_key_sha256 check (key ~ '^[0-9a-f]{64}$'),
    constraint lanes_required_capabilities_array check (jsonb_typeof(required_capabilities) = 'array'),
    constraint lanes_required_capabilities_clean check (is_clean_list(required_capabilities))
);

create table agent_lanes (
    team_id uuid not null,
    agent_id uuid not null,
    lane_id uuid not null,
    rank smallint default 1 not null,
    constraint agent_lanes_pkey primary key (team_id, agent_id, lane_id),
    constraint agent_lanes_agent_id_fkey foreign key (team_id, agent_id) references agents (team_id, id) on delete cascade,
    constraint agent_lanes_lane_id_fkey foreign key (team_id, lane_id) references lanes (team_id, id) on delete cascade,
    constraint agent_lanes_rank_known check (rank in (0, 1))
);
create index agent_lanes_lane_idx on agent_lanes (team_id, lane_id, agent_id);

create table jobs (
    team_id uuid not null,
    id uuid not null,
    lane_id uuid not null,
    type text not null,
    status text default 'queued' not null,
    priority integer default 0 not null,
    payload jsonb not null,
    tool text,
    repository text,
    collection_id uuid,
    connector_id uuid,
    bound_agent_id uuid,
    required_capabilities jsonb default '[]' not null,
    affinity_key text,
    idempotency_key text,
    agent_id uuid,
    claimed_by text,
    assigned_at timestamptz,
    started_at timestamptz,
    finished_at timestamptz,
    lease_expires_at timestamptz,
    lease_seconds integer,
    attempt integer default 1 not null,
    max_attempts integer default 3 not null,
    max_run_seconds integer default 14400 not null,
    scheduled_for timestamptz,
    next_attempt_at timestamptz,
    progress jsonb,
    result_summary text,
    error_code text,
    error_message text,
    artifacts_path text,
    parent_job_id uuid,
    parent_kind text,
    run_id uuid,
    signed boolean default false not null,
    signing_nonce text,
    signing_secret_hash text,
    cancel_requested_at timestamptz,
    cancel_requested_by_user_id uuid,
    cancel_reason text,
    created_by_user_id uuid,
    requested_by_user_id uuid,
    updated_by_user_id uuid,
    created_at timestamptz default now() not null,
    updated_at timestamptz default now() not null,
    constraint jobs_pkey primary key (team_id, id),
    constraint jobs_id_v7 check (get_byte(uuid_send(id), 6) >> 4 = 7),
    constraint jobs_team_id_fkey foreign key (team_id) references teams (id),
    constraint jobs_lane_id_fkey foreign key (team_id, lane_id) references lanes (team_id, id),
    constraint jobs_collection_id_fkey foreign key (team_id, collection_id) references collections (team_id, id),
    constraint jobs_connector_id_fkey foreign key (team_id, connector_id) references connectors (team_id, id),
    constraint jobs_bound_agent_id_fkey foreign key (team_id, bound_agent_id) references agents (team_id, id),
    constraint jobs_agent_id_fkey foreign key (team_id, agent_id) references agents (team_id, id),
    constraint jobs_run_id_fkey foreign key (team_id, run_id) references runs (team_id, id) on delete set null (run_id),
    constraint jobs_parent_job_id_fkey foreign key (team_id, parent_job_id) references jobs (team_id, id) on delete set null (parent_job_id),
    constraint jobs_created_by_user_id_fkey foreign key (team_id, created_by_user_id) references users (team_id, id),
    constraint jobs_requested_by_user_id_fkey foreign key (team_id, requested_by_user_id) references users (team_id, id),
    constraint jobs_updated_by_user_id_fkey foreign key (team_id, updated_by_user_id) references users (team_id, id),
    constraint jobs_cancel_requested_by_user_id_fkey foreign key (team_id, cancel_requested_by_user_id) references users (team_id, id),
    constraint jobs_type_given check (btrim(type) <> '' and char_length(type) <= 100),
    constraint jobs_status_known check (status in ('scheduled', 'queued', 'assigned', 'running', 'succeeded', 'failed', 'dead_letter', 'cancelled')),
    constraint jobs_payload_object check (jsonb_typeof(payload) = 'object'),
    constraint jobs_required_capabilities_array check (jsonb_typeof(required_capabilities) = 'array'),
    constraint jobs_progress_object check (jsonb_typeof(progress) = 'object'),
    constraint jobs_progress_percentage check (coalesce(nullif(progress -> 'percentage', 'null') between '0' and '100', true)),
    constraint jobs_attempt_bound check (attempt between 1 and max_attempts),
    constraint jobs_max_attempts_bounds check (max_attempts between 1 and 100),
    constraint jobs_priority_bounds check (priority between -1000 and 1000),
    constraint jobs_lease_bounds check (lease_seconds between 1 and 86400),
    constraint jobs_max_run_bounds check (max_run_seconds between 1 and 604800),
    constraint jobs_lease_state check ((status in ('assigned', 'running')) = (lease_expires_at is not null)),
    constraint jobs_owner_state check (case when status in ('assigned', 'running') then agent_id is not null and claimed_by is not null and assigned_at is not null when status in ('queued', 'scheduled') then agent_id is null and claimed_by is null and assigned_at is null and progress is null else claimed_by is null end),
    constraint jobs_terminal_finish check ((status in ('succeeded', 'failed', 'dead_letter', 'cancelled')) = (finished_at is not null)),
    constraint jobs_running_has_start check (status <> 'running' or started_at is not null),
    constraint jobs_scheduled_has_time check (status <> 'scheduled' or scheduled_for is not null),
    constraint jobs_retry_waits_queued check (next_attempt_at is null or status = 'queued'),
    constraint jobs_cancel_never_requeued check (cancel_requested_at is null or status not in ('queued', 'scheduled')),
    constraint jobs_parent_whole check (parent_job_id is null or parent_kind is not null),
    constraint jobs_parent_kind_known check (parent_kind in ('refresh', 'retry')),
    constraint jobs_signing_secret_hash_sha256 check (signing_secret_hash ~ '^[0-9a-f]{64}$'),
    constraint jobs_tool_length check (char_length(tool) <= 100),
    constraint jobs_repository_length check (char_length(repository) <= 500),
    constraint jobs_affinity_key_length check (char_length(affinity_key) <= 255),
    constraint jobs_idempotency_key_length check (char_length(idempotency_key) <= 255),
    constraint jobs_artifacts_path_length check (char_length(artifacts_path) <= 1000)
);
create index jobs_agent_idx on jobs (team_id, agent_id, id) where agent_id is not null;
create index jobs_claim_order_idx on jobs (team_id, lane_id, (- priority), id) where status = 'queued' and next_attempt_at is null;
create index jobs_claimable_idx on jobs (team_id, status, scheduled_for) where status in ('queued', 'scheduled');
create index jobs_collection_idx on jobs (team_id, collection_id, id) where collection_id is not null;
create index jobs_due_idx on jobs (team_id, coalesce(next_attempt_at, scheduled_for)) where status = 'scheduled' or next_attempt_at is not null;
create index jobs_held_idx on jobs (team_id, agent_id) where status in ('assigned', 'running');
create unique index jobs_idempotency_uq on jobs (team_id, idempotency_key) where idempotency_key is not null;
create index jobs_parent_idx on jobs (team_id, parent_job_id) where parent_job_id is not null;
create unique index jobs_run_uq on jobs (team_id, run_id) where run_id is not null;
create unique index jobs_scheduled_uq on jobs (team_id, collection_id, tool) where status = 'scheduled' and collection_id is not null;
create index jobs_status_idx on jobs (team_id, status, id);
create index jobs_tool_idx on jobs (team_id, tool, id) where tool is not null;
create index jobs_type_idx on jobs (team_id, type, id);

create table job_events (
    team_id uuid not null,
    id uuid not null,
    seq bigint generated always as identity,
    job_id uuid not null,
    level text default 'info' not null,
    message text not null,
    payload jsonb,
    attempt integer,
    created_by_user_id uuid,
    created_at timestamptz default now() not null,
    constraint job_events_pkey primary key (team_id, id),
    constraint job_events_id_v7 check (get_byte(uuid_send(id), 6) >> 4 = 7),
    constraint job_events_job_id_fkey foreign key (team_id, job_id) references jobs (team_id, id) on delete cascade,
    constraint job_events_level_known check (level in ('info', 'warn', 'error')),
    constraint job_events_message_given check (btrim(message) <> ''),
    constraint job_events_payload_object check (jsonb_typeof(payload) = 'object')
);
create index job_events_job_seq_idx on job_events (team_id, job_id, seq);

create table job_results (
    team_id uuid not null,
    id uuid not null,
    job_id uuid not null,
    attempt integer not null,
    result jsonb default '{}' not null,
    signature text,
    created_by_user_id uuid not null,
    created_at timestamptz default now() not null,
    constraint job_results_pkey primary key (team_id, id),
    constraint job_results_id_v7 check (get_byte(uuid_send(id), 6) >> 4 = 7),
    constraint job_results_job_id_fkey foreign key (team_id, job_id) references jobs (team_id, id) on delete cascade,
    constraint job_results_created_by_user_id_fkey foreign key (team_id, created_by_user_id) references users (team_id, id),
    constraint job_results_attempt_uq unique (team_id, job_id, attempt),
    constraint job_results_result_object check (jsonb_typeof(result) = 'object')
);

create trigger job_events_append_only before update or delete on job_events
    for each row execute function refuse_rewrite();

grant select, insert, update on lanes, jobs to agent_console_app;
grant select, insert, delete on agent_lanes to agent_console_app;
grant select, insert on job_events, job_results to agent_console_app;
grant select on lanes, agent_lanes, job_events, job_results to agent_console_readonly;
grant select (team_id, id, lane_id, type, status, priority, payload, tool, repository, collection_id,
              connector_id, bound_agent_id, required_capabilities, affinity_key, idempotency_key, agent_id,
              claimed_by, assigned_at, started_at, finished_at, lease_expires_at, lease_seconds, attempt,
              max_attempts, max_run_seconds, scheduled_for, next_attempt_at, progress, result_summary,
              error_code, error_message, artifacts_path, parent_job_id, parent_kind, run_id, signed,
              cancel_requested_at, cancel_requested_by_user_id, cancel_reason, created_by_user_id,
              requested_by_user_id, updated_by_user_id, created_at, updated_at)
    on jobs to agent_console_readonly;
grant delete on jobs, job_events, job_results to agent_console_maintenance;
