drop table sessions, collections, agent_connectors, connectors, worker_tokens, registration_tokens, pool_counts,
    agent_runtime, agents, settings, operator_tokens, users, teams;
drop function is_clean_list(jsonb), limit_lowered(), count_presence(), count_newcomers(), count_membership(), add_to_pool(uuid, text, bigint);
