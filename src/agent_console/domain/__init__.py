"""What is true of agents, jobs, threads and policies, whatever stores or shows them: pure."""
