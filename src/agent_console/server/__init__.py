"""The embedded HTTP server: transport, credentials, limits and the live stream, and nothing else."""
