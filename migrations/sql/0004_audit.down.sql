drop table audit_checkpoints, audit_seals, audit_log;
drop sequence audit_log_seq;
drop function make_audit_months(integer);
