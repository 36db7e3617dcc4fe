drop trigger jobs_rules on jobs;
drop trigger jobs_state_rules on jobs;
drop function keep_job_rules(), keep_job_state(), keeps_job_rules(jobs), broken_job_rule(jobs);
drop table job_results, job_events, jobs, lanes;
drop function refuse_rewrite(), keep_event_rules();
