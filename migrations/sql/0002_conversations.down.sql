alter table messages drop constraint messages_run_id_fkey;
drop table approval_looks, approvals, a2a_route_versions, a2a_routes, runs, messages, thread_participants, threads;
