-- The counters that screens read instead of counting, and runs that follow their jobs.

-- Ids of rows that the database makes itself have the form of all others: version 7, in the order of time.
do $$
begin
    if current_setting('server_version_num')::integer >= 180000 then
        execute 'create function new_id() returns uuid language sql volatile parallel safe return uuidv7()';
    else
        execute $f$
            create function new_id() returns uuid language sql volatile parallel safe return
            encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid())
                placing substring(int8send((extract(epoch from clock_timestamp()) * 1000)::bigint) from 3)
                from 1 for 6), 52, 1), 53, 1), 'hex')::uuid
        $f$;
    end if;
end
$$;

-- Seconds before the next try: 15 doubled with every try, at most ten minutes, give or take a tenth.
create function retry_delay(attempt integer) returns interval
language sql volatile parallel safe
return make_interval(secs => least(600, 15 * 2 ^ least(attempt - 1, 10)) * (0.9 + 0.2 * random()));

-- What every statement moved, added without waiting for anybody, and folded into the counts by a duty. A row without a
-- lane tells of something that is no change of state.
create table queue_moves (
    id bigint generated always as identity,
    team_id uuid not null,
    lane_id uuid,
    came_from text,
    went_to text,
    jobs integer not null,
    waited_seconds double precision default 0 not null,
    constraint queue_moves_pkey primary key (id)
);

create table queue_counts (
    team_id uuid not null,
    lane_id uuid not null,
    status text not null,
    jobs bigint not null,
    constraint queue_counts_pkey primary key (team_id, lane_id, status)
)
 with (fillfactor = 50);

create table queue_tallies (
    team_id uuid not null,
    came_from text not null,
    went_to text not null,
    jobs bigint not null,
    waited_seconds double precision not null,
    constraint queue_tallies_pkey primary key (team_id, came_from, went_to)
)
 with (fillfactor = 50);

create function count_new_jobs() returns trigger
language plpgsql as $$
begin
    insert into queue_moves (team_id, lane_id, went_to, jobs)
    select team_id, lane_id, status, count(*) from come group by team_id, lane_id, status;
    return null;
end
$$;

-- A function that moves one job counts by itself what it moved, for a third of what it costs here.
create function count_moved_jobs() returns trigger
language plpgsql as $$
begin
    if current_setting('agent_console.counts', true) = 'own' then
        return null;
    end if;
    insert into queue_moves (team_id, lane_id, came_from, went_to, jobs, waited_seconds)
    select moved.team_id, moved.lane_id, moved.came_from, moved.went_to, count(*), sum(moved.waited)
      from (select o.team_id, o.lane_id, o.status as came_from,
                   case when n.lane_id = o.lane_id then n.status end as went_to,
                   case when o.look_at = '-infinity' and n.agent_id is not null
                        then extract(epoch from now() - coalesce(o.next_attempt_at, o.scheduled_for, o.created_at))
                        else 0 end as waited
              from gone o join come n on n.team_id = o.team_id and n.id = o.id
             where n.status <> o.status or n.lane_id <> o.lane_id
             union all
            select n.team_id, n.lane_id, null, n.status, 0
              from gone o join come n on n.team_id = o.team_id and n.id = o.id
             where n.lane_id <> o.lane_id) as moved
     group by moved.team_id, moved.lane_id, moved.came_from, moved.went_to;
    return null;
end
$$;

create function count_gone_jobs() returns trigger
language plpgsql as $$
begin
    insert into queue_moves (team_id, lane_id, came_from, jobs)
    select team_id, lane_id, status, count(*) from gone group by team_id, lane_id, status;
    return null;
end
$$;

create trigger jobs_count_new after insert on jobs
    referencing new table as come for each statement execute function count_new_jobs();
create trigger jobs_count_moved after update on jobs
    referencing old table as gone new table as come for each statement execute function count_moved_jobs();
create trigger jobs_count_gone after delete on jobs
    referencing old table as gone for each statement execute function count_gone_jobs();

-- The triggers hold off every writer until this is committed, so nothing is missed or counted twice.
insert into queue_counts (team_id, lane_id, status, jobs)
select team_id, lane_id, status, count(*) from jobs group by team_id, lane_id, status;

-- Adds what has been moved since the last time to the counts. `after` is a hint where the living rows begin, so that
-- a snapshot held open elsewhere does not make this walk over what it has folded before.
create function fold_queue_moves(after bigint, at_most integer) returns table (last_id bigint, folded bigint)
language plpgsql as $$
begin
    return query
    with moves as (
        delete from queue_moves
         where id in (select m.id from queue_moves m where m.id > after order by m.id limit at_most)
     returning id, team_id, lane_id, came_from, went_to, jobs, waited_seconds
    ), counted as (
        insert into queue_counts as c (team_id, lane_id, status, jobs)
        select s.team_id, s.lane_id, s.status, sum(s.jobs)
          from (select team_id, lane_id, went_to as status, jobs from moves
                 where lane_id is not null and went_to is not null
                 union all
                select team_id, lane_id, came_from, -jobs from moves
                 where lane_id is not null and came_from is not null) as s
         group by s.team_id, s.lane_id, s.status
         order by s.team_id, s.lane_id, s.status
        on conflict (team_id, lane_id, status) do update set jobs = c.jobs + excluded.jobs
    ), tallied as (
        insert into queue_tallies as t (team_id, came_from, went_to, jobs, waited_seconds)
        select m.team_id, coalesce(m.came_from, ''), coalesce(m.went_to, ''), sum(m.jobs), sum(m.waited_seconds)
          from moves m
         group by 1, 2, 3
         order by 1, 2, 3
        on conflict (team_id, came_from, went_to) do update
           set jobs = t.jobs + excluded.jobs, waited_seconds = t.waited_seconds + excluded.waited_seconds
    )
    select max(m.id), count(*) from moves m;
end
$$;

-- An id as people see it: its kind, and its 128 bits five at a time.
create function shown_id(kind text, id uuid) returns text
language sql immutable strict parallel safe
return kind || '_' || (
    select string_agg(substr('0123456789abcdefghjkmnpqrstvwxyz',
                             1 + substring(b'00' || ('x' || replace(id::text, '-', ''))::bit(128)
                                           from 5 * place + 1 for 5)::bit(5)::integer, 1), '' order by place)
      from generate_series(0, 25) as place);

-- A run's status follows its job's. A retry leaves the run running; a deadline ends it as timeout. Each change is told
-- in the audit trail here, because whoever moves the job, an agent, a person or time, comes by: that a person wants it
-- to stop, that it began, and how it ended.
create function run_follows_job() returns trigger
language plpgsql as $$
declare
    job jsonb := jsonb_build_object('job_id', shown_id('job', new.id), 'attempt', new.attempt);
    run record;
    callers text;
    by_agent boolean;
    agent text;
begin
    if old.cancel_requested_at is null and new.cancel_requested_at is not null then
        perform append_audit(new.team_id, case when u.id is null then 'system' else 'human' end, u.id, null,
                             coalesce(u.full_name, 'agent-console'), 'run.cancel', 'run', shown_id('run', r.id),
                             job || jsonb_build_object('from', old.status), r.thread_id, r.id,
                             reason => new.cancel_reason)
           from runs r
           left join users u on u.team_id = new.team_id and u.id = new.cancel_requested_by_user_id
          where r.team_id = new.team_id and r.id = new.run_id and r.ended_at is null;
    end if;
    if old.status is not distinct from new.status then
        return null;
    end if;

    -- Only an agent's own turn ends a job in its name; everything else is done by time. So an agent's word for its own
    -- failure makes no timeout of it.
    get diagnostics callers = pg_context;
    by_agent := new.status in ('running', 'succeeded') or callers like '%PL/pgSQL function take_turns(%';

    update runs r
       set status = case new.status when 'running' then 'running'
                                    when 'succeeded' then 'succeeded'
                                    when 'cancelled' then 'cancelled'
                                    else case when new.error_code = 'deadline' and not by_agent
                                              then 'timeout' else 'failed' end end,
           started_at = case when new.status = 'running' then coalesce(r.started_at, now()) else r.started_at end,
           ended_at = case when new.finished_at is not null then now() end,
           error_code = case when new.finished_at is not null then new.error_code end,
           error_message = case when new.finished_at is not null then new.error_message end,
           output_summary = case when new.status = 'succeeded' and new.result_summary is not null
                                 then r.output_summary || jsonb_build_object('summary', new.result_summary)
                                 else r.output_summary end,
           updated_at = now()
     where r.team_id = new.team_id and r.id = new.run_id and r.ended_at is null
       and (new.finished_at is not null or new.status = 'running')
 returning r.id, r.thread_id, r.status, r.started_at, r.requested_by_agent_id into run;
    if not found then
        return null;
    end if;
    -- Whoever moved the job knows nothing of the run: it is told here, in the words of live/notices.py.
    perform pg_notify('agent_console_changes', jsonb_build_object(
        'team', shown_id('tea', new.team_id), 'topic', 'runs', 'ids', jsonb_build_array(jsonb_build_array(
            shown_id('run', run.id), shown_id('thr', run.thread_id), shown_id('agt', run.requested_by_agent_id))))::text);
    -- Another try begins nothing new, and a job that only waited ended with the word of who cancelled it.
    if (run.status = 'running' and run.started_at < now())
       or (run.status = 'cancelled' and old.status in ('queued', 'scheduled')) then
        return null;
    end if;

    if by_agent then
        select a.name into agent from agents a where a.team_id = new.team_id and a.id = new.agent_id;
    end if;
    perform append_audit(new.team_id, case when agent is null then 'system' else 'agent' end, null,
                         case when agent is not null then new.agent_id end, coalesce(agent, 'agent-console'),
                         'run.' || case run.status when 'running' then 'start' when 'succeeded' then 'finish'
                                                   when 'cancelled' then 'stop' when 'timeout' then 'timeout'
                                                   else 'fail' end,
                         'run', shown_id('run', run.id), job, run.thread_id, run.id);
    return null;
end
$$;

create trigger jobs_run_follows after update on jobs
    for each row when (new.run_id is not null)
    execute function run_follows_job();
