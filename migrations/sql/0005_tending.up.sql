-- What becomes of jobs as time passes; how the duties go, and which programs the schema serves.

-- What time alone changes, oldest first: schedules and retries come due, leases, deadlines and run times end. Rows that
-- somebody else holds are passed over; they will be looked at again.
create function tend_jobs(at_most integer) returns table (
    team_id uuid, job_id uuid, lane_id uuid, bound_agent_id uuid, was text, status text)
language plpgsql as $$
#variable_conflict use_column
begin
    return query
    with due as (
        select j.team_id, j.id, j.lane_id, j.bound_agent_id, j.status, j.attempt, j.max_attempts, j.claimed_by,
               j.lease_expires_at,
               j.lease_seconds, j.cancel_requested_at,
               r.deadline_at <= now() as too_late,
               j.assigned_at + make_interval(secs => j.max_run_seconds) <= now() as too_long,
               least(j.lease_expires_at, j.assigned_at + make_interval(secs => j.max_run_seconds), r.deadline_at) as next_look
          from (select * from jobs
                 where look_at <= now() and look_at > '-infinity'
                 order by look_at
                 limit at_most
                   for no key update skip locked) as j
          left join runs r on r.team_id = j.team_id and r.id = j.run_id
    ), judged as (
        select d.*,
               case when d.status in ('queued', 'scheduled') then 'ready'
                    when d.next_look > now() then 'later'
                    when d.cancel_requested_at is not null then 'cancelled'
                    when d.too_late then 'failed'
                    when d.attempt >= d.max_attempts then 'dead_letter'
                    else 'queued' end as becomes,
               case when d.too_late then 'deadline' when d.too_long then 'max_run_time' else 'lease_expired' end as code,
               case when d.too_late then 'the deadline of its run is over'
                    when d.too_long then 'it ran longer than it may'
                    else 'lease expired: ' || coalesce(d.claimed_by, 'its agent') || ' did not renew it for '
                         || coalesce(d.lease_seconds, 120) || ' s' end as why,
               now() + interval '30 seconds' * (0.9 + 0.2 * random()) as again_at
          from due d
    ), changed as (
        update jobs j
           set look_at = case d.becomes when 'ready' then '-infinity' when 'later' then d.next_look
                                        when 'queued' then d.again_at end,
               status = case when d.becomes in ('ready', 'later') then j.status else d.becomes end,
               agent_id = case d.becomes when 'queued' then null else j.agent_id end,
               assigned_at = case d.becomes when 'queued' then null else j.assigned_at end,
               progress = case d.becomes when 'queued' then null else j.progress end,
               claimed_by = case d.becomes when 'later' then j.claimed_by end,
               lease_expires_at = case d.becomes when 'later' then j.lease_expires_at end,
               attempt = case d.becomes when 'queued' then j.attempt + 1 else j.attempt end,
               next_attempt_at = case d.becomes when 'queued' then d.again_at when 'ready' then j.next_attempt_at end,
               finished_at = case when d.becomes in ('cancelled', 'failed', 'dead_letter') then now() end,
               error_code = case when d.becomes in ('ready', 'later') then j.error_code else d.code end,
               error_message = case when d.becomes in ('ready', 'later') then j.error_message else d.why end,
               updated_at = case when d.becomes in ('ready', 'later') then j.updated_at else now() end
          from judged d
         where j.team_id = d.team_id and j.id = d.id
     returning j.id
    ), told as (
        insert into job_events (team_id, job_id, level, message, payload, attempt)
        select d.team_id, d.id, case d.becomes when 'queued' then 'warn' else 'error' end,
               d.status || ' to ' || d.becomes || ': ' || d.why,
               jsonb_build_object('from', d.status, 'to', d.becomes, 'claimed_by', d.claimed_by), d.attempt
          from judged d
         where d.becomes not in ('ready', 'later')
    ), lost as (
        insert into queue_moves (team_id, came_from, went_to, jobs)
        select d.team_id, 'lease', 'lost', count(*) from judged d
         where d.becomes not in ('ready', 'later') and d.code = 'lease_expired'
         group by d.team_id
    )
    select d.team_id, d.id, d.lane_id, d.bound_agent_id, d.status, d.becomes from judged d where d.becomes <> 'later';
end
$$;

-- Removes finished jobs, with their stories and results, that are older than their team keeps them. It may be called by
-- who may not delete: what it removes is decided by the team's own setting alone. A job is never older than its id, so
-- jobs_status_idx leads to the oldest; who is younger than the setting is not looked at.
create function prune_jobs(at_most integer) returns bigint
language plpgsql security definer set search_path = public, pg_temp as $$
declare
    pruned bigint;
begin
    perform set_config('agent_console.retention', 'on', true);
    with kept as (
        select t.id as team_id, now() - make_interval(days => coalesce(
                   (select (s.value #>> '{}')::integer from settings s
                     where s.team_id = t.id and s.name = 'job_history_days'), 90)) as since
          from teams t
    ), old as (
        select k.team_id, j.id
          from kept k
          cross join (values ('succeeded'), ('failed'), ('dead_letter'), ('cancelled')) as f (status)
          cross join lateral (
               select j.id from jobs j
                where j.team_id = k.team_id and j.status = f.status
                  and j.id < (lpad(to_hex((extract(epoch from k.since) * 1000)::bigint), 12, '0')
                              || '00000000000000000000')::uuid
                  and j.finished_at < k.since
                order by j.id
                limit at_most) as j
         limit at_most
    ), gone as (
        delete from jobs j using old o where j.team_id = o.team_id and j.id = o.id returning j.id
    )
    select count(*) into pruned from gone;
    perform set_config('agent_console.retention', 'off', true);
    return pruned;
end
$$;
revoke execute on function prune_jobs(integer) from public;
grant execute on function prune_jobs(integer) to agent_console_app;

-- How each duty goes, whichever process does it: one row for each, written over every few seconds by those who do it.
-- It belongs to no team, as the duties do.
create table duty_rounds (
    duty text not null,
    done_at timestamptz,
    done_by text,
    seconds double precision,
    rounds bigint default 0 not null,
    rows bigint default 0 not null,
    failures bigint default 0 not null,
    failed_at timestamptz,
    error text,
    constraint duty_rounds_pkey primary key (duty),
    constraint duty_rounds_duty_given check (btrim(duty) <> '' and char_length(duty) <= 50),
    constraint duty_rounds_counts_whole check (rounds >= 0 and rows >= 0 and failures >= 0),
    constraint duty_rounds_done_whole check ((done_at is null) = (done_by is null) and (done_at is null) = (seconds is null)),
    constraint duty_rounds_failed_whole check ((failed_at is null) = (error is null))
)
 with (fillfactor = 50);

-- Which programs this schema serves, by the schema that each was written for. Migrating writes it; whoever works here
-- asks it, so that servers may stay while the schema moves on under them.
create table schema_fits (
    revision text not null,
    since timestamptz default now() not null,
    constraint schema_fits_pkey primary key (revision),
    constraint schema_fits_revision_numbered check (revision ~ '^[0-9]{4}$')
);

grant select, insert, delete on queue_moves to agent_console_app;
grant select, insert, update on queue_counts, queue_tallies, duty_rounds to agent_console_app;
grant select on queue_moves, queue_counts, queue_tallies, duty_rounds to agent_console_readonly;
grant select on schema_fits to agent_console_app, agent_console_readonly;
