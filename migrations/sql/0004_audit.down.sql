drop function append_audit, audit_event_hash, seal_audit, prune_audit, prune_audit_seals, audit_kept_since;
drop table audit_checkpoints, audit_heads, audit_seals, audit_log;
drop sequence audit_log_seq;
drop function make_audit_months(integer);
