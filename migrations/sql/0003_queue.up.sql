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
create index lanes_bound_idx on lanes (team_id, bound_agent_id) where bound_agent_id is not null;

-- Every rule that one row of jobs must keep, in one call. As twenty-six checks they were read anew from the catalogue
-- by every statement, which cost a claim more than all the rest of its work. Which one is broken is told by its name.
create function job_fits(
    type text, status text, priority integer, tool text, repository text, required_capabilities jsonb,
    affinity_key text, idempotency_key text, agent_id uuid, claimed_by text, assigned_at timestamptz, started_at
    timestamptz, finished_at timestamptz, lease_expires_at timestamptz, lease_seconds integer, attempt integer,
    max_attempts integer, max_run_seconds integer, scheduled_for timestamptz, next_attempt_at timestamptz,
    look_at timestamptz, progress jsonb, artifacts_path text, parent_job_id uuid, parent_kind text,
    signing_secret_hash text, cancel_requested_at timestamptz
) returns boolean
language plpgsql immutable as $$
declare
    broken text;
begin
    broken := case
        when (btrim(type) <> '' and char_length(type) <= 100) is false then 'jobs_type_given'
        when (status in ('scheduled', 'queued', 'assigned', 'running', 'succeeded', 'failed', 'dead_letter', 'cancelled')) is false then 'jobs_status_known'
        when (jsonb_typeof(required_capabilities) = 'array') is false then 'jobs_required_capabilities_array'
        when (jsonb_typeof(progress) = 'object') is false then 'jobs_progress_object'
        when (coalesce(nullif(progress -> 'percentage', 'null') between '0' and '100', true)) is false then 'jobs_progress_percentage'
        when (attempt between 1 and max_attempts) is false then 'jobs_attempt_bound'
        when (max_attempts between 1 and 100) is false then 'jobs_max_attempts_bounds'
        when (priority between -1000 and 1000) is false then 'jobs_priority_bounds'
        when (lease_seconds between 1 and 86400) is false then 'jobs_lease_bounds'
        when (max_run_seconds between 1 and 604800) is false then 'jobs_max_run_bounds'
        when ((status in ('assigned', 'running')) = (lease_expires_at is not null)) is false then 'jobs_lease_state'
        when (case when status in ('assigned', 'running') then agent_id is not null and claimed_by is not null and assigned_at is not null when status in ('queued', 'scheduled') then agent_id is null and claimed_by is null and assigned_at is null and progress is null else claimed_by is null end) is false then 'jobs_owner_state'
        when ((status in ('succeeded', 'failed', 'dead_letter', 'cancelled')) = (finished_at is not null)) is false then 'jobs_terminal_finish'
        when (status <> 'running' or started_at is not null) is false then 'jobs_running_has_start'
        when (status <> 'scheduled' or scheduled_for is not null) is false then 'jobs_scheduled_has_time'
        when (case when status = 'queued' then look_at is not null and (look_at = '-infinity' or look_at is not distinct from next_attempt_at) when status = 'scheduled' then look_at is not null and (look_at = '-infinity' or look_at is not distinct from scheduled_for) when status in ('assigned', 'running') then look_at is not null and look_at > '-infinity' else look_at is null end) is false then 'jobs_look_state'
        when (next_attempt_at is null or status = 'queued') is false then 'jobs_retry_waits_queued'
        when (cancel_requested_at is null or status not in ('queued', 'scheduled')) is false then 'jobs_cancel_never_requeued'
        when (parent_job_id is null or parent_kind is not null) is false then 'jobs_parent_whole'
        when (parent_kind in ('refresh', 'retry')) is false then 'jobs_parent_kind_known'
        when (signing_secret_hash ~ '^[0-9a-f]{64}$') is false then 'jobs_signing_secret_hash_sha256'
        when (char_length(tool) <= 100) is false then 'jobs_tool_length'
        when (char_length(repository) <= 500) is false then 'jobs_repository_length'
        when (char_length(affinity_key) <= 255) is false then 'jobs_affinity_key_length'
        when (char_length(idempotency_key) <= 255) is false then 'jobs_idempotency_key_length'
        when (char_length(artifacts_path) <= 1000) is false then 'jobs_artifacts_path_length'
    end;
    if broken is not null then
        raise exception 'new row for relation "jobs" violates check constraint "%"', broken
            using errcode = 'check_violation', constraint = broken, table = 'jobs';
    end if;
    return true;
end
$$;

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
    -- When somebody has to look at it again: -infinity while it may be claimed, null when it has ended. A held job's
    -- is at most its lease's end, and is moved only when it has come, so that renewing a lease touches no index.
    look_at timestamptz,
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
    constraint jobs_fits check (job_fits(type, status, priority, tool, repository, required_capabilities, affinity_key, idempotency_key, agent_id, claimed_by, assigned_at, started_at, finished_at, lease_expires_at, lease_seconds, attempt, max_attempts, max_run_seconds, scheduled_for, next_attempt_at, look_at, progress, artifacts_path, parent_job_id, parent_kind, signing_secret_hash, cancel_requested_at))
);
create index jobs_agent_idx on jobs (team_id, agent_id, id) where agent_id is not null;
create index jobs_claim_order_idx on jobs (team_id, lane_id, (- priority), id) where look_at = '-infinity';
create index jobs_claimable_idx on jobs (team_id, status, scheduled_for) where status in ('queued', 'scheduled');
create index jobs_collection_idx on jobs (team_id, collection_id, id) where collection_id is not null;
create index jobs_held_idx on jobs (team_id, agent_id) where status in ('assigned', 'running');
create unique index jobs_idempotency_uq on jobs (team_id, idempotency_key) where idempotency_key is not null;
create index jobs_look_idx on jobs (look_at) where look_at > '-infinity';
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

-- A payload never changes, and a large one is not to be read again with every change of its job.
create function refuse_payload() returns trigger
language plpgsql as $$
begin
    raise exception 'new row for relation "jobs" violates check constraint "jobs_payload_object"'
        using errcode = 'check_violation', constraint = 'jobs_payload_object', table = 'jobs';
end
$$;
create trigger jobs_payload_object before insert or update of payload on jobs
    for each row when (jsonb_typeof(new.payload) <> 'object') execute function refuse_payload();

-- Whoever puts a job in need not think of when it is looked at first.
create function look_first() returns trigger
language plpgsql as $$
begin
    new.look_at := case new.status when 'queued' then coalesce(new.next_attempt_at, '-infinity')
                                   when 'scheduled' then new.scheduled_for
                                   else new.lease_expires_at end;
    return new;
end
$$;
create trigger jobs_look_first before insert on jobs
    for each row when (new.look_at is null and new.finished_at is null) execute function look_first();

create trigger job_events_append_only before update or delete on job_events
    for each row execute function refuse_rewrite();

grant select, insert, update on lanes, jobs to agent_console_app;
grant select, insert on job_events, job_results to agent_console_app;
grant select on lanes, job_events, job_results to agent_console_readonly;
grant select (team_id, id, lane_id, type, status, priority, payload, tool, repository, collection_id,
              connector_id, bound_agent_id, required_capabilities, affinity_key, idempotency_key, agent_id,
              claimed_by, assigned_at, started_at, finished_at, lease_expires_at, lease_seconds, attempt,
              max_attempts, max_run_seconds, scheduled_for, next_attempt_at, look_at, progress,
              result_summary,
              error_code, error_message, artifacts_path, parent_job_id, parent_kind, run_id, signed,
              cancel_requested_at, cancel_requested_by_user_id, cancel_reason, created_by_user_id,
              requested_by_user_id, updated_by_user_id, created_at, updated_at)
    on jobs to agent_console_readonly;
grant delete on jobs, job_events, job_results to agent_console_maintenance;
