drop table job_results, job_events, jobs, agent_lanes, lanes;
drop function refuse_rewrite();
