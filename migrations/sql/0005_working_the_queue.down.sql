drop trigger jobs_count_new on jobs;
drop trigger jobs_count_moved on jobs;
drop trigger jobs_count_gone on jobs;
drop trigger jobs_run_follows on jobs;
drop function take_turns(uuid, jsonb, uuid[], integer[], uuid[], text[], text[]), tend_jobs(integer),
    take_turn(uuid, uuid, text, text, uuid, integer, text, boolean, integer, boolean, uuid[], integer[], uuid[]),
    fold_queue_moves(bigint, integer), prune_jobs(integer), count_new_jobs(), count_moved_jobs(), count_gone_jobs(), run_follows_job(),
    shown_id(text, uuid), retry_delay(integer), new_id();
drop type turn;
drop table queue_moves, queue_counts, queue_tallies, duty_rounds, schema_fits;
