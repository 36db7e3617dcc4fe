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
               -- What was decided above is of the row as it was before the lock. Said so that no partial index of
               -- running jobs is taken, whose dead entries would be walked.
               and case when j.status = d.was then case d.outcome
                   when 'succeeded' then j.status = 'running'
                        and (coalesce(d.apart, false) or (not j.signed and j.collection_id is null))
                   when 'cancelled' then j.cancel_requested_at is not null
                   else (j.cancel_requested_at is not null) = (d.becomes = 'cancelled') end end
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
