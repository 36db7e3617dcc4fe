"""The job queue: its lists, and one job with its story."""
