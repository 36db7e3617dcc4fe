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
