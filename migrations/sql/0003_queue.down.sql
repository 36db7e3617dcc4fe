drop table job_results, job_events, jobs, lanes;
drop function refuse_rewrite(), refuse_payload(), look_first(), job_fits;
