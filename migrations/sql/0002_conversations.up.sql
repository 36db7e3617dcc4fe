-- Threads, messages, runs; A2A routes with their history; approvals.

create table threads (
    team_id uuid not null,
    id uuid not null,
    title text,
    visibility text default 'private' not null,
    created_by_user_id uuid not null,
    updated_by_user_id uuid,
    archived_at timestamptz,
    created_at timestamptz default now() not null,
    updated_at timestamptz default now() not null,
    constraint threads_pkey primary key (team_id, id),
    constraint threads_id_v7 check (get_byte(uuid_send(id), 6) >> 4 = 7),
    constraint threads_team_id_fkey foreign key (team_id) references teams (id),
    constraint threads_created_by_user_id_fkey foreign key (team_id, created_by_user_id) references users (team_id, id),
    constraint threads_updated_by_user_id_fkey foreign key (team_id, updated_by_user_id) references users (team_id, id),
    constraint threads_title_length check (char_length(title) <= 500),
    constraint threads_visibility_known check (visibility in ('private', 'shared'))
)
 with (fillfactor = 70);
create index threads_archived_at_idx on threads (team_id, archived_at);
create index threads_archived_idx on threads (team_id, id) where archived_at is not null;
create index threads_created_at_idx on threads (team_id, created_at desc);
create index threads_created_by_idx on threads (team_id, created_by_user_id, id);
create index threads_open_idx on threads (team_id, id) where archived_at is null;
create index threads_shared_archived_idx on threads (team_id, id) where visibility = 'shared' and archived_at is not null;
create index threads_shared_open_idx on threads (team_id, id) where visibility = 'shared' and archived_at is null;

create table thread_participants (
    team_id uuid not null,
    id uuid not null,
    thread_id uuid not null,
    participant_type text not null,
    user_id uuid,
    agent_id uuid,
    can_read boolean default true not null,
    can_write boolean default false not null,
    can_share boolean default false not null,
    thread_archived boolean default false not null,
    created_by_user_id uuid,
    created_at timestamptz default now() not null,
    constraint thread_participants_pkey primary key (team_id, id),
    constraint thread_participants_id_v7 check (get_byte(uuid_send(id), 6) >> 4 = 7),
    constraint thread_participants_thread_id_fkey foreign key (team_id, thread_id) references threads (team_id, id) on delete cascade,
    constraint thread_participants_user_id_fkey foreign key (team_id, user_id) references users (team_id, id),
    constraint thread_participants_agent_id_fkey foreign key (team_id, agent_id) references agents (team_id, id) on delete cascade,
    constraint thread_participants_created_by_user_id_fkey foreign key (team_id, created_by_user_id) references users (team_id, id),
    constraint thread_participants_participant_type_known check (participant_type in ('human', 'agent')),
    constraint thread_participants_one_actor check ((participant_type = 'human' and user_id is not null and agent_id is null) or (participant_type = 'agent' and agent_id is not null and user_id is null)),
    constraint thread_participants_implied_read check (can_read or not (can_write or can_share))
);
create index thread_participants_agent_archived_idx on thread_participants (team_id, agent_id, thread_archived, thread_id) where participant_type = 'agent';
create index thread_participants_agent_idx on thread_participants (team_id, agent_id, thread_id) where participant_type = 'agent';
create unique index thread_participants_agent_uq on thread_participants (team_id, thread_id, agent_id) where participant_type = 'agent';
create unique index thread_participants_human_uq on thread_participants (team_id, thread_id, user_id) where participant_type = 'human';
create index thread_participants_thread_idx on thread_participants (team_id, thread_id, id);
create index thread_participants_user_archived_idx on thread_participants (team_id, user_id, thread_archived, thread_id) where participant_type = 'human';
create index thread_participants_user_idx on thread_participants (team_id, user_id, thread_id) where participant_type = 'human';

create table messages (
    team_id uuid not null,
    id uuid not null,
    seq bigint generated always as identity,
    thread_id uuid not null,
    author_type text not null,
    author_user_id uuid,
    author_agent_id uuid,
    content text not null,
    payload jsonb default '{}' not null,
    run_id uuid,
    to_agent_ids jsonb default '[]' not null,
    broadcast boolean default false not null,
    intervention boolean default false not null,
    idempotency_key text,
    created_at timestamptz default now() not null,
    constraint messages_pkey primary key (team_id, id),
    constraint messages_id_v7 check (get_byte(uuid_send(id), 6) >> 4 = 7),
    constraint messages_thread_id_fkey foreign key (team_id, thread_id) references threads (team_id, id) on delete cascade,
    constraint messages_author_user_id_fkey foreign key (team_id, author_user_id) references users (team_id, id),
    constraint messages_author_agent_id_fkey foreign key (team_id, author_agent_id) references agents (team_id, id),
    constraint messages_author_type_known check (author_type in ('human', 'agent', 'system')),
    constraint messages_author_fits check ((author_type = 'human' and author_user_id is not null and author_agent_id is null) or (author_type = 'agent' and author_agent_id is not null and author_user_id is null) or (author_type = 'system' and author_user_id is null and author_agent_id is null)),
    constraint messages_content_given check (content <> ''),
    constraint messages_content_size check (octet_length(content) <= 65536),
    constraint messages_payload_object check (jsonb_typeof(payload) = 'object'),
    constraint messages_to_agent_ids_array check (jsonb_typeof(to_agent_ids) = 'array'),
    constraint messages_only_people check (author_type = 'human' or not (broadcast or intervention)),
    constraint messages_idempotency_key_length check (char_length(idempotency_key) <= 255)
);
create unique index messages_idempotency_uq on messages (team_id, thread_id, idempotency_key) where idempotency_key is not null;
create index messages_run_idx on messages (team_id, run_id, seq desc) where run_id is not null;
-- Team and thread are one of the lexemes, spelled as no word of a text can be: one look finds the words of one thread,
-- however much is said elsewhere. The list of what is still to be sorted in is kept short, because whoever writes
-- when it is full sorts it in, with the thread locked.
create index messages_search_idx on messages using gin ((array_to_tsvector(array[' ' || team_id::text || ' ' || thread_id::text]) || to_tsvector('simple', content))) with (gin_pending_list_limit = 512);
create index messages_thread_created_idx on messages (team_id, thread_id, created_at desc);
create index messages_thread_seq_idx on messages (team_id, thread_id, seq desc);

create table runs (
    team_id uuid not null,
    id uuid not null,
    seq bigint generated always as identity,
    thread_id uuid not null,
    requested_by_type text not null,
    requested_by_user_id uuid,
    requested_by_agent_id uuid,
    target_agent_id uuid not null,
    status text default 'queued' not null,
    input_message_id uuid,
    trace_id uuid,
    parent_run_id uuid,
    delegation_path jsonb default '[]' not null,
    idempotency_key text,
    request_digest text,
    route_version integer,
    deadline_at timestamptz,
    started_at timestamptz,
    ended_at timestamptz,
    error_code text,
    error_message text,
    output_summary jsonb default '{}' not null,
    created_at timestamptz default now() not null,
    updated_at timestamptz default now() not null,
    constraint runs_pkey primary key (team_id, id),
    constraint runs_id_v7 check (get_byte(uuid_send(id), 6) >> 4 = 7),
    constraint runs_thread_id_fkey foreign key (team_id, thread_id) references threads (team_id, id) on delete cascade,
    constraint runs_requested_by_user_id_fkey foreign key (team_id, requested_by_user_id) references users (team_id, id),
    constraint runs_requested_by_agent_id_fkey foreign key (team_id, requested_by_agent_id) references agents (team_id, id),
    constraint runs_target_agent_id_fkey foreign key (team_id, target_agent_id) references agents (team_id, id) on delete restrict,
    constraint runs_input_message_id_fkey foreign key (team_id, input_message_id) references messages (team_id, id) on delete set null (input_message_id),
    constraint runs_parent_run_id_fkey foreign key (team_id, parent_run_id) references runs (team_id, id) on delete set null (parent_run_id),
    constraint runs_requested_by_type_known check (requested_by_type in ('human', 'agent')),
    constraint runs_requester_fits check ((requested_by_type = 'human' and requested_by_user_id is not null and requested_by_agent_id is null) or (requested_by_type = 'agent' and requested_by_agent_id is not null and requested_by_user_id is null)),
    constraint runs_status_known check (status in ('queued', 'running', 'succeeded', 'failed', 'cancelled', 'timeout')),
    constraint runs_terminal_has_end check ((status in ('succeeded', 'failed', 'cancelled', 'timeout')) = (ended_at is not null)),
    constraint runs_delegation_path_array check (jsonb_typeof(delegation_path) = 'array'),
    constraint runs_output_summary_object check (jsonb_typeof(output_summary) = 'object'),
    constraint runs_idempotency_key_length check (char_length(idempotency_key) <= 255),
    constraint runs_request_digest_sha256 check (request_digest ~ '^[0-9a-f]{64}$')
);
create unique index runs_idempotency_uq on runs (team_id, idempotency_key) where idempotency_key is not null;
create index runs_open_idx on runs (team_id, thread_id) where ended_at is null;
create index runs_in_vain_idx on runs (team_id, ended_at) where status in ('failed', 'cancelled', 'timeout');
create index runs_parent_idx on runs (team_id, parent_run_id);
create index runs_request_idx on runs (team_id, thread_id, request_digest, seq desc) where request_digest is not null;
create index runs_seq_idx on runs (team_id, seq desc);
create index runs_status_idx on runs (team_id, status, seq desc);
create index runs_target_status_idx on runs (team_id, target_agent_id, status, seq desc);
create index runs_thread_seq_idx on runs (team_id, thread_id, seq desc);
create index runs_trace_idx on runs (team_id, trace_id, seq);
create index runs_unfinished_idx on runs (team_id, deadline_at) where ended_at is null;

create table a2a_routes (
    team_id uuid not null,
    id uuid not null,
    from_agent_id uuid not null,
    to_agent_id uuid not null,
    policy text not null,
    notes text,
    version integer default 1 not null,
    created_by_user_id uuid,
    updated_by_user_id uuid,
    created_at timestamptz default now() not null,
    updated_at timestamptz default now() not null,
    constraint a2a_routes_pkey primary key (team_id, id),
    constraint a2a_routes_id_v7 check (get_byte(uuid_send(id), 6) >> 4 = 7),
    constraint a2a_routes_team_id_fkey foreign key (team_id) references teams (id),
    constraint a2a_routes_from_agent_id_fkey foreign key (team_id, from_agent_id) references agents (team_id, id) on delete cascade,
    constraint a2a_routes_to_agent_id_fkey foreign key (team_id, to_agent_id) references agents (team_id, id) on delete cascade,
    constraint a2a_routes_created_by_user_id_fkey foreign key (team_id, created_by_user_id) references users (team_id, id),
    constraint a2a_routes_updated_by_user_id_fkey foreign key (team_id, updated_by_user_id) references users (team_id, id),
    constraint a2a_routes_pair_uq unique (team_id, from_agent_id, to_agent_id),
    constraint a2a_routes_policy_known check (policy in ('allowed', 'blocked', 'requires_human_approval')),
    constraint a2a_routes_no_self check (from_agent_id <> to_agent_id),
    constraint a2a_routes_version_positive check (version >= 1),
    constraint a2a_routes_notes_length check (char_length(notes) <= 1000)
);
create index a2a_routes_from_idx on a2a_routes (team_id, from_agent_id, id);
create index a2a_routes_policy_idx on a2a_routes (team_id, policy, id);
create index a2a_routes_to_idx on a2a_routes (team_id, to_agent_id, id);

create table a2a_route_versions (
    team_id uuid not null,
    route_id uuid not null,
    version integer not null,
    from_agent_id uuid not null,
    to_agent_id uuid not null,
    policy text not null,
    notes text,
    removed boolean default false not null,
    reason text,
    changed_by_user_id uuid,
    changed_at timestamptz default now() not null,
    constraint a2a_route_versions_pkey primary key (team_id, route_id, version),
    constraint a2a_route_versions_team_id_fkey foreign key (team_id) references teams (id),
    constraint a2a_route_versions_changed_by_user_id_fkey foreign key (team_id, changed_by_user_id) references users (team_id, id),
    constraint a2a_route_versions_pair_uq unique (team_id, from_agent_id, to_agent_id, version),
    constraint a2a_route_versions_policy_known check (policy in ('allowed', 'blocked', 'requires_human_approval'))
);

create table approvals (
    team_id uuid not null,
    id uuid not null,
    thread_id uuid not null,
    from_agent_id uuid not null,
    to_agent_id uuid not null,
    route_id uuid not null,
    route_version integer not null,
    parent_run_id uuid,
    input_message_id uuid,
    trace_id uuid not null,
    delegation_path jsonb default '[]' not null,
    envelope jsonb not null,
    digest text not null,
    state text default 'pending' not null,
    expires_at timestamptz not null,
    decided_by_user_id uuid,
    decided_at timestamptz,
    decision_reason text,
    run_id uuid,
    idempotency_key text,
    request_digest text,
    created_at timestamptz default now() not null,
    constraint approvals_pkey primary key (team_id, id),
    constraint approvals_id_v7 check (get_byte(uuid_send(id), 6) >> 4 = 7),
    constraint approvals_team_id_fkey foreign key (team_id) references teams (id),
    constraint approvals_thread_id_fkey foreign key (team_id, thread_id) references threads (team_id, id) on delete cascade,
    constraint approvals_from_agent_id_fkey foreign key (team_id, from_agent_id) references agents (team_id, id),
    constraint approvals_to_agent_id_fkey foreign key (team_id, to_agent_id) references agents (team_id, id),
    constraint approvals_parent_run_id_fkey foreign key (team_id, parent_run_id) references runs (team_id, id) on delete set null (parent_run_id),
    constraint approvals_input_message_id_fkey foreign key (team_id, input_message_id) references messages (team_id, id) on delete set null (input_message_id),
    constraint approvals_run_id_fkey foreign key (team_id, run_id) references runs (team_id, id) on delete set null (run_id),
    constraint approvals_decided_by_user_id_fkey foreign key (team_id, decided_by_user_id) references users (team_id, id),
    constraint approvals_delegation_path_array check (jsonb_typeof(delegation_path) = 'array'),
    constraint approvals_envelope_object check (jsonb_typeof(envelope) = 'object'),
    constraint approvals_digest_sha256 check (digest ~ '^[0-9a-f]{64}$'),
    constraint approvals_state_known check (state in ('pending', 'approved', 'rejected', 'expired', 'withdrawn', 'superseded')),
    constraint approvals_decided_has_time check ((state = 'pending') = (decided_at is null)),
    constraint approvals_person_decides check (state not in ('approved', 'rejected') or decided_by_user_id is not null),
    constraint approvals_rejection_has_reason check (state <> 'rejected' or btrim(coalesce(decision_reason, '')) <> ''),
    constraint approvals_run_only_approved check (run_id is null or state = 'approved'),
    constraint approvals_request_digest_sha256 check (request_digest ~ '^[0-9a-f]{64}$')
);
create index approvals_decided_idx on approvals (team_id, decided_at desc, id desc) where state <> 'pending';
create unique index approvals_idempotency_uq on approvals (team_id, idempotency_key) where idempotency_key is not null;
create index approvals_pair_idx on approvals (team_id, from_agent_id, to_agent_id) where state = 'pending';
create index approvals_parent_idx on approvals (team_id, parent_run_id) where state = 'pending' and parent_run_id is not null;
create index approvals_pending_idx on approvals (team_id, expires_at, id) where state = 'pending';
create index approvals_pending_thread_idx on approvals (team_id, thread_id) where state = 'pending';
create index approvals_request_idx on approvals (team_id, thread_id, request_digest, id desc) where request_digest is not null;
create index approvals_thread_idx on approvals (team_id, thread_id, id);
create index approvals_trace_idx on approvals (team_id, trace_id) where state = 'pending';

-- Who reads a request just now. A row is written again every few seconds and cleared away soon after the last time,
-- so there are as many of them as there are people looking.
create table approval_looks (
    team_id uuid not null,
    approval_id uuid not null,
    user_id uuid not null,
    session text not null,
    begun_at timestamptz default now() not null,
    seen_at timestamptz default now() not null,
    constraint approval_looks_pkey primary key (team_id, approval_id, user_id, session),
    constraint approval_looks_team_id_fkey foreign key (team_id) references teams (id),
    constraint approval_looks_approval_id_fkey foreign key (team_id, approval_id) references approvals (team_id, id) on delete cascade,
    constraint approval_looks_user_id_fkey foreign key (team_id, user_id) references users (team_id, id),
    constraint approval_looks_session_given check (btrim(session) <> '' and char_length(session) <= 64)
)
 with (fillfactor = 50);

alter table messages add constraint messages_run_id_fkey foreign key (team_id, run_id) references runs (team_id, id) on delete set null (run_id) deferrable initially deferred;

grant select, insert, update on threads, thread_participants, runs, a2a_routes, approvals, approval_looks
    to agent_console_app;
-- What was said stays as it was said.
grant select, insert on messages to agent_console_app;
grant delete on thread_participants, a2a_routes, approval_looks to agent_console_app;
grant select, insert on a2a_route_versions to agent_console_app;
grant select on threads, thread_participants, messages, runs, a2a_routes, a2a_route_versions, approvals,
    approval_looks to agent_console_readonly;
grant delete on threads to agent_console_maintenance;
