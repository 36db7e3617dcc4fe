-- Taking, finishing and tending jobs; the counters that screens read instead of counting.

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
 returning r.id, r.thread_id, r.status, r.started_at into run;
    -- Another try begins nothing new, and a job that only waited ended with the word of who cancelled it.
    if not found or (run.status = 'running' and run.started_at < now())
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

-- One agent's turn: what it finishes, what it wants next, and what proves who it is.
create type turn as (
    n integer, agent_id uuid, key_hash text, routing text,
    job_id uuid, attempt integer, outcome text, summary text, error_code text, error text,
    result jsonb, signature text, artifacts_path text, apart boolean,
    wants integer, lease integer, starts boolean);

-- The turns of many agents with one and the same routing, in one go; `n` counts them from 1. What they finish is fenced
-- by the attempt; what they get are the best of the given lanes, bound jobs first, then by priority, then by age, each
-- row locked once and never waited for. The agents' own rows are locked, so that nobody exceeds a limit and nobody gets
-- a job after it has been drained, revoked or deleted. `floors` say where the living rows of a lane begin: hints.
-- A turn that is apart (signed, or of a collection) is refused here unless its caller says that it sees to the rest.
-- Every row tells how its turn stands and what became of what it finished; there is one for every job that the turn
-- got, or one if it got none.
create function take_turns(
    p_team uuid, p_turns jsonb, p_lanes uuid[], p_floor_priorities integer[], p_floor_ids uuid[],
    p_types text[], p_repositories text[]
) returns table (
    turn integer, standing text, finish text, finish_status text, finish_lane uuid, pause jsonb,
    job_id uuid, lane_id uuid, type text, status text, priority integer, payload jsonb, tool text,
    repository text, collection_id uuid, connector_id uuid, run_id uuid, required_capabilities jsonb,
    attempt integer, max_attempts integer, max_run_seconds integer, lease_expires_at timestamptz,
    assigned_at timestamptz, signed boolean, signing_nonce text)
language plpgsql as $$
#variable_conflict use_column
declare
    turns turn[];
    stands text[];
    rooms integer[];
    limits integer[];
    over boolean[];
    users uuid[];
    workers text[];
    finishes text[];
    finish_states text[];
    finish_lanes uuid[];
    is_paused jsonb;
    finishing boolean;
    unfinished boolean := false;
    any_bound boolean := false;
    counts text;
    wanted integer;
    unit integer;
    found_one boolean;
    reach integer;
    looked_at uuid[];
    bound_jobs uuid[];
    job_ids uuid[] := '{}';
    for_turns integer[] := '{}';
    more_jobs uuid[];
    more_turns integer[];
    r record;
begin
    select array_agg(t order by t.n), bool_or(t.job_id is not null) into turns, finishing
      from jsonb_populate_recordset(null::turn, p_turns) as t;
    stands := array_fill('unknown'::text, array[cardinality(turns)]);
    rooms := array_fill(0, array[cardinality(turns)]);
    limits := rooms;
    over := array_fill(true, array[cardinality(turns)]);
    users := array_fill(null::uuid, array[cardinality(turns)]);
    workers := array_fill(null::text, array[cardinality(turns)]);
    finishes := array_fill(null::text, array[cardinality(turns)]);
    finish_states := finishes;
    finish_lanes := users;

    -- Who they are and how they stand. The lock is kept to the end: a limit, a drain or a revocation holds.
    for r in
        select t.n, t.wants, a.system_user_id, a.worker_id, a.max_concurrent_jobs, a.over_limit,
               case when a.revoked_at is not null then 'revoked'
                    when coalesce(t.wants, 0) = 0 then 'done'
                    when tm.paused_at is not null then 'paused'
                    when a.drained_at is not null then 'drained'
                    when t.routing is distinct from
                         md5(w.capabilities::text || coalesce((select string_agg(k.connector_id::text, ',' order by k.connector_id)
                               from agent_connectors k where k.team_id = p_team and k.agent_id = a.id), ''))
                         and t.routing is not null then 'stale'
                    else 'open' end as said,
               case when tm.paused_at is not null then
                    jsonb_build_object('mode', tm.pause_mode, 'reason', tm.pause_reason, 'since', tm.paused_at) end as pause,
               exists (select from lanes b
                         join jobs h on h.team_id = b.team_id and h.lane_id = b.id and h.look_at = '-infinity'
                        where b.team_id = p_team and b.bound_agent_id = a.id) as has_bound
          from unnest(turns) as t
          join teams tm on tm.id = p_team
          join agents a on a.team_id = p_team and a.id = t.agent_id
          join agent_runtime w on w.team_id = p_team and w.agent_id = t.agent_id
         where a.deleted_at is null
           and (t.key_hash is null or a.api_key_hash = t.key_hash
                or (a.previous_key_hash = t.key_hash and a.previous_key_ends_at > now()))
         order by a.id
           for no key update of a
    loop
        stands[r.n] := r.said;
        users[r.n] := r.system_user_id;
        workers[r.n] := r.worker_id;
        limits[r.n] := r.max_concurrent_jobs;
        over[r.n] := r.over_limit;
        rooms[r.n] := least(r.wants, r.max_concurrent_jobs);
        is_paused := r.pause;
        any_bound := any_bound or r.has_bound;
    end loop;

    -- What is moved here is counted here: by the triggers it would cost a small batch as much as the rest.
    counts := set_config('agent_console.counts', 'own', true);
    if finishing then
        for r in
            with done as (
            update jobs j
               set status = d.becomes,
                   agent_id = case when d.becomes = 'queued' then null else j.agent_id end,
                   assigned_at = case when d.becomes = 'queued' then null else j.assigned_at end,
                   progress = case when d.becomes = 'queued' then null else j.progress end,
                   claimed_by = null,
                   lease_expires_at = null,
                   attempt = case when d.becomes = 'queued' then j.attempt + 1 else j.attempt end,
                   next_attempt_at = d.again_at,
                   look_at = d.again_at,
                   finished_at = case when d.becomes <> 'queued' then now() end,
                   result_summary = case when d.becomes = 'succeeded' then d.summary else j.result_summary end,
                   artifacts_path = coalesce(d.artifacts_path, j.artifacts_path),
                   error_code = case when d.becomes <> 'succeeded' then coalesce(d.error_code, j.error_code) end,
                   error_message = case when d.becomes <> 'succeeded' then coalesce(d.error, j.error_message) end,
                   updated_by_user_id = users[d.n],
                   updated_at = now()
              from (select t.*, o.status as was, o.claimed_by, verdict.becomes,
                           case when verdict.becomes = 'queued' then now() + retry_delay(t.attempt) end as again_at
                      from unnest(turns) as t
                      -- One by one, by key: while the table has no statistics yet, a join would read all jobs of the
                      -- team once for each that is held.
                      cross join lateral (
                           select k.id, k.status, k.claimed_by, k.attempt, k.max_attempts, k.cancel_requested_at
                             from jobs k where k.team_id = p_team and k.id = t.job_id offset 0) as o
                      cross join lateral (
                           select case when t.outcome = 'succeeded' then 'succeeded'
                                       when o.cancel_requested_at is not null then 'cancelled'
                                       when t.outcome = 'failed' then 'failed'
                                       when o.attempt >= o.max_attempts then 'dead_letter'
                                       else 'queued' end as becomes) as verdict
                     where stands[t.n] not in ('unknown', 'revoked')
                     order by o.id) as d
             where j.team_id = p_team and j.id = d.job_id
               and j.agent_id = d.agent_id and j.attempt = d.attempt and j.finished_at is null
               -- Said so that no partial index of running jobs is taken, whose dead entries would be walked.
               and case d.outcome
                   when 'succeeded' then j.status = 'running'
                        and (coalesce(d.apart, false) or (not j.signed and j.collection_id is null))
                   when 'cancelled' then j.cancel_requested_at is not null
                   else (j.cancel_requested_at is not null) = (d.becomes = 'cancelled') end
         returning d.n, j.id, j.lane_id, d.was, d.becomes, d.claimed_by, d.attempt, d.summary, d.error, d.result,
                   d.signature
            ), told as (
                insert into job_events (team_id, job_id, level, message, payload, attempt, created_by_user_id)
                select p_team, d.id,
                       case when d.becomes in ('succeeded', 'cancelled') then 'info'
                            when d.becomes = 'queued' then 'warn' else 'error' end,
                       d.was || ' to ' || d.becomes || coalesce(': ' || nullif(coalesce(d.error, d.summary), ''), ''),
                       jsonb_build_object('from', d.was, 'to', d.becomes, 'claimed_by', d.claimed_by), d.attempt,
                       users[d.n]
                  from done d
            ), moved as (
                insert into queue_moves (team_id, lane_id, came_from, went_to, jobs)
                select p_team, d.lane_id, d.was, d.becomes, count(*) from done d group by d.lane_id, d.was, d.becomes
            )
            select d.n, d.id, d.lane_id, d.becomes, d.attempt, d.result, d.signature from done d
        loop
            finishes[r.n] := 'ok';
            finish_states[r.n] := r.becomes;
            finish_lanes[r.n] := r.lane_id;
            if r.result is not null and r.becomes = 'succeeded' then
                insert into job_results (team_id, id, job_id, attempt, result, signature, created_by_user_id)
                values (p_team, new_id(), r.id, r.attempt, r.result, r.signature, users[r.n]);
            end if;
        end loop;

        for n in 1 .. cardinality(turns) loop
            unfinished := unfinished or (finishes[n] is null and (turns[n]).job_id is not null);
        end loop;
        if unfinished then
            for r in
                select t.n, j.status,
                       case when j.id is null then 'missing'
                            when j.agent_id is distinct from t.agent_id or j.attempt <> t.attempt then 'not_owner'
                            when j.finished_at is not null then 'ended'
                            when t.outcome = 'cancelled' and j.cancel_requested_at is null then 'not_asked'
                            when t.outcome = 'succeeded' and j.status = 'assigned' then 'not_started'
                            when t.outcome = 'succeeded' and (j.signed or j.collection_id is not null) then 'apart'
                            else 'again' end as verdict
                  from unnest(turns) as t
                  left join jobs j on j.team_id = p_team and j.id = t.job_id
                 where t.job_id is not null and finishes[t.n] is null and stands[t.n] not in ('unknown', 'revoked')
            loop
                finishes[r.n] := r.verdict;
                finish_states[r.n] := r.status;
                -- Whoever is refused does not hear of a job it got besides.
                if stands[r.n] = 'open' then
                    stands[r.n] := 'done';
                end if;
            end loop;
        end if;
    end if;

    if 'open' = any (stands) then
        -- Who has just ended one has room for one: it held no more than its limit. Nobody else is trusted to, but a
        -- count reads every job that the agent ended since the oldest snapshot.
        -- Asked after the locks and the completions, for each agent by itself: as a join, planned while nobody held
        -- anything, it read what everybody holds once for each turn.
        for r in
            select t.n, held.jobs
              from unnest(turns) as t
              cross join lateral (
                   select count(*)::integer as jobs from jobs j
                    where j.team_id = p_team and j.agent_id = t.agent_id and j.status in ('assigned', 'running')) as held
             where stands[t.n] = 'open' and (over[t.n] or rooms[t.n] > 1 or finishes[t.n] is distinct from 'ok')
        loop
            rooms[r.n] := least(rooms[r.n], limits[r.n] - r.jobs);
            if rooms[r.n] <= 0 then
                stands[r.n] := 'full';
            end if;
            if over[r.n] and r.jobs <= limits[r.n] then
                update agents a set over_limit = false where a.team_id = p_team and a.id = (turns[r.n]).agent_id;
            end if;
        end loop;

        wanted := 0;
        for n in 1 .. cardinality(turns) loop
            if stands[n] = 'open' then
                wanted := wanted + rooms[n];
            end if;
        end loop;

        -- Jobs for one agent alone come first, whatever their priority. Nobody else takes them: only an operator who
        -- works on one just now can be in the way.
        if any_bound then
            select array_agg(mine.id order by mine.n, mine.place), array_agg(mine.n order by mine.n, mine.place)
              into bound_jobs, more_turns
              from (select c.id, t.n, row_number() over (partition by t.n order by - c.priority, c.id) as place
                      from unnest(turns) as t
                      join lanes l on l.team_id = p_team and l.bound_agent_id = t.agent_id
                      cross join lateral (
                           select j.id, j.priority from jobs j
                            where j.team_id = p_team and j.lane_id = l.id and j.look_at = '-infinity'
                            order by (- j.priority), j.id
                            limit rooms[t.n]) as c
                     where stands[t.n] = 'open'
                       and (p_types is null or l.job_type = any (p_types))
                       and (p_repositories is null or l.repository = any (p_repositories))
                       and (l.connector_id is null or exists (
                            select from connectors k
                             where k.team_id = p_team and k.id = l.connector_id
                               and (k.credential_location = 'server'
                                    or (k.credential_location = 'agent' and exists (
                                        select from agent_connectors h
                                         where h.team_id = p_team and h.agent_id = t.agent_id
                                           and h.connector_id = l.connector_id)))))) as mine
             where mine.place <= rooms[mine.n];
        end if;
        if bound_jobs is not null then
            for r in
                select j.id from jobs j
                 where j.team_id = p_team and j.id = any (bound_jobs) and j.look_at = '-infinity'
                 order by array_position(bound_jobs, j.id)
                   for update skip locked
            loop
                job_ids := job_ids || r.id;
                for_turns := for_turns || more_turns[array_position(bound_jobs, r.id)];
            end loop;
            wanted := wanted - cardinality(job_ids);
        end if;

        if wanted > 0 and cardinality(p_lanes) > 0 then
            -- Some more are looked at than are wanted, because another batch may be taking the first of them just now,
            -- and many more if others are taking all of those.
            reach := wanted + least(wanted, 30) + 2;
            loop
                looked_at := array(
                    select c.id
                      from unnest(p_lanes, p_floor_priorities, p_floor_ids) as l (lane, floor_priority, floor_id)
                      cross join lateral (
                           select j.id, j.priority from jobs j
                            where j.team_id = p_team and j.lane_id = l.lane and j.look_at = '-infinity'
                              and (- j.priority, j.id) >= (l.floor_priority, l.floor_id)
                            order by (- j.priority), j.id
                            limit reach) as c
                     order by - c.priority, c.id
                     limit reach);
                more_jobs := array(
                    select j.id from jobs j
                     where j.team_id = p_team and j.id = any (looked_at) and j.look_at = '-infinity'
                     order by - j.priority, j.id
                     limit wanted
                       for update skip locked);
                exit when cardinality(more_jobs) = wanted or cardinality(looked_at) < reach or reach > 10000;
                reach := reach * 8;
            end loop;
            -- The first goes to who has waited longest, and nobody gets a second while another has none.
            unit := 1;
            more_turns := '{}';
            while cardinality(more_turns) < cardinality(more_jobs) loop
                found_one := false;
                for n in 1 .. cardinality(turns) loop
                    exit when cardinality(more_turns) = cardinality(more_jobs);
                    if stands[n] = 'open'
                       and unit + cardinality(array_positions(for_turns, n)) <= rooms[n] then
                        more_turns := more_turns || n;
                        found_one := true;
                    end if;
                end loop;
                exit when not found_one;
                unit := unit + 1;
            end loop;
            job_ids := job_ids || more_jobs[1 : cardinality(more_turns)];
            for_turns := for_turns || more_turns;
        end if;
    end if;

    for n in 1 .. cardinality(turns) loop
        if n <> all (for_turns) then
            turn := n;
            standing := stands[n];
            finish := finishes[n];
            finish_status := finish_states[n];
            finish_lane := finish_lanes[n];
            pause := is_paused;
            return next;
        end if;
    end loop;

    if cardinality(job_ids) > 0 then
        -- An update gives its rows in any order; what was chosen first is told first.
        return query
        with got as (
            update jobs j
               set status = case when g.starts then 'running' else 'assigned' end,
                   agent_id = g.agent_id,
                   claimed_by = workers[g.n],
                   assigned_at = now(),
                   started_at = case when g.starts then coalesce(j.started_at, now()) else j.started_at end,
                   lease_seconds = g.lease,
                   lease_expires_at = g.lease_end,
                   look_at = least(g.lease_end, now() + make_interval(secs => j.max_run_seconds), g.deadline_at),
                   next_attempt_at = null,
                   updated_by_user_id = users[g.n],
                   updated_at = now()
              from (select o.id, o.status as was, f.place, t.n, t.agent_id, t.starts, t.lease, d.deadline_at,
                           now() + make_interval(secs => t.lease) as lease_end,
                           extract(epoch from now() - coalesce(o.next_attempt_at, o.scheduled_for, o.created_at)) as waited
                      from unnest(job_ids, for_turns) with ordinality as f (id, n, place)
                      join unnest(turns) as t on t.n = f.n
                      join jobs o on o.team_id = p_team and o.id = f.id
                      left join runs d on d.team_id = p_team and d.id = o.run_id) as g
             where j.team_id = p_team and j.id = g.id
         returning g.place, g.n, g.was, g.waited, j.id, j.lane_id, j.type, j.status, j.priority, j.payload, j.tool, j.repository,
                   j.collection_id, j.connector_id, j.run_id, j.required_capabilities, j.attempt, j.max_attempts,
                   j.max_run_seconds, j.lease_expires_at, j.assigned_at, j.signed, j.signing_nonce
        ), told as (
            insert into job_events (team_id, job_id, level, message, payload, attempt, created_by_user_id)
            select p_team, g.id, 'info',
                   g.was || ' to assigned' || case g.status when 'running' then ' to running' else '' end || ': '
                   || workers[g.n],
                   jsonb_build_object('from', g.was, 'to', g.status, 'claimed_by', workers[g.n]), g.attempt, users[g.n]
              from got g
        ), moved as (
            insert into queue_moves (team_id, lane_id, came_from, went_to, jobs, waited_seconds)
            select p_team, g.lane_id, g.was, g.status, count(*), sum(g.waited)
              from got g group by g.lane_id, g.was, g.status
        )
        select g.n, stands[g.n], finishes[g.n], finish_states[g.n], finish_lanes[g.n], is_paused,
               g.id, g.lane_id, g.type, g.status,
               g.priority, g.payload, g.tool, g.repository, g.collection_id, g.connector_id, g.run_id,
               g.required_capabilities, g.attempt, g.max_attempts, g.max_run_seconds, g.lease_expires_at,
               g.assigned_at, g.signed, g.signing_nonce
          from got g
         order by g.place;
    end if;
    counts := set_config('agent_console.counts', '', true);
end
$$;

-- One turn of one agent, as nearly all of them are: it has succeeded with what it held, or held nothing, and wants one
-- job or none. Everything that is not plainly so is left to take_turns: nothing has been done then, and `done` is
-- false. A turn that is done may still have got no job.
create function take_turn(
    p_team uuid, p_agent uuid, p_key_hash text, p_routing text, p_job uuid, p_attempt integer, p_summary text,
    p_wants boolean, p_lease integer, p_starts boolean,
    p_lanes uuid[], p_floor_priorities integer[], p_floor_ids uuid[],
    out done boolean,
    out job_id uuid, out lane_id uuid, out type text, out status text, out priority integer, out payload jsonb,
    out tool text, out repository text, out collection_id uuid, out connector_id uuid, out run_id uuid,
    out required_capabilities jsonb, out attempt integer, out max_attempts integer, out max_run_seconds integer,
    out lease_expires_at timestamptz, out assigned_at timestamptz, out signed boolean, out signing_nonce text)
language plpgsql as $$
#variable_conflict use_column
declare
    own_user uuid;
    worker text;
    room integer;
    left_lane uuid;
    was text;
    since timestamptz;
    counts text;
begin
    select a.system_user_id, a.worker_id, a.max_concurrent_jobs,
           a.revoked_at is null
           and (not p_wants or (
                a.drained_at is null
                and not a.over_limit
                and tm.paused_at is null
                -- Jobs for this agent alone come first, and those are found by take_turns.
                and not exists (
                    select from lanes b
                      join jobs h on h.team_id = b.team_id and h.lane_id = b.id and h.look_at = '-infinity'
                     where b.team_id = p_team and b.bound_agent_id = p_agent)
                and (p_routing is null or p_routing = md5(w.capabilities::text || coalesce(
                    (select string_agg(k.connector_id::text, ',' order by k.connector_id)
                       from agent_connectors k where k.team_id = p_team and k.agent_id = p_agent), '')))))
      into own_user, worker, room, done
      from agents a
      join agent_runtime w on w.team_id = p_team and w.agent_id = p_agent
      join teams tm on tm.id = p_team
     where a.team_id = p_team and a.id = p_agent and a.deleted_at is null
       and (p_key_hash is null or a.api_key_hash = p_key_hash)
       for no key update of a;
    if done is not true then
        done := false;
        return;
    end if;

    counts := set_config('agent_console.counts', 'own', true);
    if p_job is not null then
        update jobs j
           set status = 'succeeded',
               claimed_by = null,
               lease_expires_at = null,
               look_at = null,
               finished_at = now(),
               result_summary = p_summary,
               error_code = null,
               error_message = null,
               updated_by_user_id = own_user,
               updated_at = now()
         where j.team_id = p_team and j.id = p_job
           and j.agent_id = p_agent and j.attempt = p_attempt and j.finished_at is null
           -- Said so that no partial index of running jobs is taken, whose dead entries would be walked.
           and case when j.collection_id is null then j.status = 'running' and not j.signed end
     returning j.lane_id into left_lane;
        done := found;
    end if;

    if done and p_wants and cardinality(p_lanes) > 0 then
        -- The best lane is where the best head is. If others are taking that one just now, the next of the lane will
        -- do, unless its priority is less than what waits in another lane.
        with heads as (
            select l.lane, l.floor_priority, l.floor_id, h.priority
              from unnest(p_lanes, p_floor_priorities, p_floor_ids) as l (lane, floor_priority, floor_id)
              cross join lateral (
                   select j.id, j.priority from jobs j
                    where j.team_id = p_team and j.lane_id = l.lane and j.look_at = '-infinity'
                      and (- j.priority, j.id) >= (l.floor_priority, l.floor_id)
                    order by (- j.priority), j.id
                    limit 1) as h
             order by - h.priority, h.id
             limit 2
        ), picked as (
            select j.id, j.status as was, coalesce(j.next_attempt_at, j.scheduled_for, j.created_at) as since
              from jobs j
             where j.team_id = p_team and j.look_at = '-infinity'
               and j.lane_id = (select lane from heads limit 1)
               and (- j.priority, j.id) >= ((select floor_priority from heads limit 1), (select floor_id from heads limit 1))
               and j.priority >= (select min(priority) from heads)
             order by (- j.priority), j.id
             limit 1
               for update skip locked
        )
        update jobs j
           set status = case when p_starts then 'running' else 'assigned' end,
               agent_id = p_agent,
               claimed_by = worker,
               assigned_at = now(),
               started_at = case when p_starts then coalesce(j.started_at, now()) else j.started_at end,
               lease_seconds = p_lease,
               lease_expires_at = now() + make_interval(secs => p_lease),
               look_at = now() + make_interval(secs => least(p_lease, j.max_run_seconds)),
               next_attempt_at = null,
               updated_by_user_id = own_user,
               updated_at = now()
          from picked
         where j.team_id = p_team and j.id = picked.id and j.run_id is null
           -- Who has just ended one has room for one.
           and (p_job is not null
                or room > (select count(*) from jobs h
                            where h.team_id = p_team and h.agent_id = p_agent and h.status in ('assigned', 'running')))
     returning picked.was, picked.since, j.id, j.lane_id, j.type, j.status, j.priority,
               j.payload, j.tool, j.repository, j.collection_id, j.connector_id, j.run_id, j.required_capabilities,
               j.attempt, j.max_attempts, j.max_run_seconds, j.lease_expires_at, j.assigned_at, j.signed,
               j.signing_nonce
          into was, since, job_id, lane_id, type, status, priority,
               payload, tool, repository, collection_id, connector_id, run_id, required_capabilities,
               attempt, max_attempts, max_run_seconds, lease_expires_at, assigned_at, signed,
               signing_nonce;
    end if;
    counts := set_config('agent_console.counts', '', true);
    if left_lane is null and job_id is null then
        done := done and not p_wants;
        return;
    end if;

    insert into job_events (team_id, job_id, level, message, payload, attempt, created_by_user_id)
    select p_team, e.id, 'info', e.words, e.facts, e.attempt, own_user
      from (values (p_job, 'running to succeeded' || coalesce(': ' || nullif(p_summary, ''), ''),
                    jsonb_build_object('from', 'running', 'to', 'succeeded', 'claimed_by', worker), p_attempt),
                   (job_id, was || case when p_starts then ' to assigned to running: ' else ' to assigned: ' end || worker,
                    jsonb_build_object('from', was, 'to', status, 'claimed_by', worker), attempt))
           as e (id, words, facts, attempt)
     where e.id is not null;
    insert into queue_moves (team_id, lane_id, came_from, went_to, jobs, waited_seconds)
    select p_team, m.lane, m.came_from, m.went_to, 1, m.waited
      from (values (left_lane, 'running', 'succeeded', 0), (lane_id, was, status, extract(epoch from now() - since)))
           as m (lane, came_from, went_to, waited)
     where m.lane is not null;
end
$$;

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
