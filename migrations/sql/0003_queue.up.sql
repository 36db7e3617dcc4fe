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
    constraint jobs_cancel_requested_by_user_id_fkey foreign key (team_id, cancel_requested_by_user_id) references users (team_id, id)
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
    -- In the order in which a story is read. One more index, for ids that nobody asks by, would cost every move.
    constraint job_events_pkey primary key (team_id, job_id, seq),
    constraint job_events_job_id_fkey foreign key (team_id, job_id) references jobs (team_id, id) on delete cascade
);
create index job_events_worse_idx on job_events (team_id, job_id, seq) where level <> 'info';

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

-- Every rule that one row of jobs must keep; the name of the first that is broken. They are no checks of the table:
-- PostgreSQL reads each check anew from the catalogue for every statement, which cost a claim more than all its work.
create function broken_job_rule(job jobs) returns text
language plpgsql immutable as $$
begin
    return case
        when (jsonb_typeof(job.payload) = 'object') is false then 'jobs_payload_object'
        when (get_byte(uuid_send(job.id), 6) >> 4 = 7) is false then 'jobs_id_v7'
        when (btrim(job.type) <> '' and char_length(job.type) <= 100) is false then 'jobs_type_given'
        when (job.status in ('scheduled', 'queued', 'assigned', 'running', 'succeeded', 'failed', 'dead_letter', 'cancelled')) is false then 'jobs_status_known'
        when (jsonb_typeof(job.required_capabilities) = 'array') is false then 'jobs_required_capabilities_array'
        when (jsonb_typeof(job.progress) = 'object') is false then 'jobs_progress_object'
        when (coalesce(nullif(job.progress -> 'percentage', 'null') between '0' and '100', true)) is false then 'jobs_progress_percentage'
        when (job.attempt between 1 and job.max_attempts) is false then 'jobs_attempt_bound'
        when (job.max_attempts between 1 and 100) is false then 'jobs_max_attempts_bounds'
        when (job.priority between -1000 and 1000) is false then 'jobs_priority_bounds'
        when (job.lease_seconds between 1 and 86400) is false then 'jobs_lease_bounds'
        when (job.max_run_seconds between 1 and 604800) is false then 'jobs_max_run_bounds'
        when ((job.status in ('assigned', 'running')) = (job.lease_expires_at is not null)) is false then 'jobs_lease_state'
        when (case when job.status in ('assigned', 'running') then job.agent_id is not null and job.claimed_by is not null and job.assigned_at is not null when job.status in ('queued', 'scheduled') then job.agent_id is null and job.claimed_by is null and job.assigned_at is null and job.progress is null else job.claimed_by is null end) is false then 'jobs_owner_state'
        when ((job.status in ('succeeded', 'failed', 'dead_letter', 'cancelled')) = (job.finished_at is not null)) is false then 'jobs_terminal_finish'
        when (job.status <> 'running' or job.started_at is not null) is false then 'jobs_running_has_start'
        when (job.status <> 'scheduled' or job.scheduled_for is not null) is false then 'jobs_scheduled_has_time'
        -- A time that no program can read would keep everybody from every page that has the job on it.
        when (job.scheduled_for between '0001-12-31 00:00Z' and '9999-01-02 00:00Z') is false then 'jobs_scheduled_bounds'
        when (case when job.status = 'queued' then job.look_at is not null and (job.look_at = '-infinity' or job.look_at is not distinct from job.next_attempt_at) when job.status = 'scheduled' then job.look_at is not null and (job.look_at = '-infinity' or job.look_at is not distinct from job.scheduled_for) when job.status in ('assigned', 'running') then job.look_at is not null and job.look_at > '-infinity' else job.look_at is null end) is false then 'jobs_look_state'
        when (job.next_attempt_at is null or job.status = 'queued') is false then 'jobs_retry_waits_queued'
        when (job.cancel_requested_at is null or job.status not in ('queued', 'scheduled')) is false then 'jobs_cancel_never_requeued'
        when (job.parent_job_id is null or job.parent_kind is not null) is false then 'jobs_parent_whole'
        when (job.parent_kind in ('refresh', 'retry')) is false then 'jobs_parent_kind_known'
        when (job.signing_secret_hash ~ '^[0-9a-f]{64}$') is false then 'jobs_signing_secret_hash_sha256'
        when (char_length(job.tool) <= 100) is false then 'jobs_tool_length'
        when (char_length(job.repository) <= 500) is false then 'jobs_repository_length'
        when (char_length(job.affinity_key) <= 255) is false then 'jobs_affinity_key_length'
        when (char_length(job.idempotency_key) <= 255) is false then 'jobs_idempotency_key_length'
        when (char_length(job.artifacts_path) <= 1000) is false then 'jobs_artifacts_path_length'
    end;
end
$$;

create function keeps_job_rules(job jobs) returns boolean
language plpgsql immutable as $$
declare
    broken text := broken_job_rule(job);
begin
    if broken is not null then
        raise exception 'new row for relation "jobs" violates check constraint "%"', broken
            using errcode = 'check_violation', constraint = broken, table = 'jobs';
    end if;
    return true;
end
$$;

create function keep_job_rules() returns trigger
language plpgsql as $$
begin
    -- Whoever puts a job in need not think of when it is looked at first.
    if tg_op = 'INSERT' and new.look_at is null and new.finished_at is null then
        new.look_at := case new.status when 'queued' then coalesce(new.next_attempt_at, '-infinity')
                                       when 'scheduled' then new.scheduled_for
                                       else new.lease_expires_at end;
    end if;
    return case when keeps_job_rules(new) then new end;
end
$$;
create trigger jobs_rules before insert or update of
    id, type, priority, payload, tool, repository, required_capabilities, affinity_key, idempotency_key, max_attempts,
    max_run_seconds, scheduled_for, parent_job_id, parent_kind, signing_secret_hash, cancel_requested_at on jobs
    for each row execute function keep_job_rules();

-- What moves a job touches none of those columns, and is asked only what its state has to keep. Each state has its own
-- question, because a transaction pays for every question that it asks. Whatever is not plainly right is asked all.
create function keep_job_state() returns trigger
language plpgsql as $$
begin
    if new.status = 'running' then
        if new.agent_id is not null and new.claimed_by is not null and new.assigned_at is not null
           and new.started_at is not null and new.lease_expires_at is not null and new.finished_at is null
           and new.next_attempt_at is null and new.look_at > '-infinity' and new.attempt between 1 and new.max_attempts
           and new.lease_seconds between 1 and 86400 and new.progress is null and new.artifacts_path is null then
            return new;
        end if;
    elsif new.status = 'succeeded' then
        if new.finished_at is not null and new.claimed_by is null and new.lease_expires_at is null
           and new.next_attempt_at is null and new.look_at is null and new.attempt between 1 and new.max_attempts
           and new.lease_seconds between 1 and 86400 and new.progress is null and new.artifacts_path is null then
            return new;
        end if;
    end if;
    return case when keeps_job_rules(new) then new end;
end
$$;
create trigger jobs_state_rules before update on jobs
    for each row execute function keep_job_state();

-- The same for events: one is added with every move of a job. Who gives no id gets one of the time and the number of
-- the line, which nobody else has: a random one costs as much as the line's entry in its index.
create function keep_event_rules() returns trigger
language plpgsql as $$
declare
    broken text;
begin
    if new.id is null then
        new.id := encode(substring(int8send((extract(epoch from now()) * 1000)::bigint) from 3) || '\x7000'
                         || int8send(new.seq - 9223372036854775807 - 1), 'hex')::uuid;
    end if;
    if new.level in ('info', 'warn', 'error') and btrim(new.message) <> ''
       and (new.payload is null or jsonb_typeof(new.payload) = 'object') and get_byte(uuid_send(new.id), 6) >> 4 = 7 then
        return new;
    end if;
    broken := case when new.level not in ('info', 'warn', 'error') then 'job_events_level_known'
                   when btrim(new.message) = '' then 'job_events_message_given'
                   when jsonb_typeof(new.payload) <> 'object' then 'job_events_payload_object'
                   else 'job_events_id_v7' end;
    if new.level is null or new.message is null then
        return new;
    end if;
    raise exception 'new row for relation "job_events" violates check constraint "%"', broken
        using errcode = 'check_violation', constraint = broken, table = 'job_events';
end
$$;
create trigger job_events_rules before insert on job_events
    for each row execute function keep_event_rules();

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
