"""The repository that speaks to an agent-console server: transport and nothing else."""
