drop table sessions, collections, agent_connectors, connectors, worker_tokens, registration_tokens, agent_runtime,
    agents, settings, operator_tokens, users, teams;
drop function is_clean_list(jsonb);
