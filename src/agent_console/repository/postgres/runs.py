"""Runs: each with its one job, and the tree of who asked whom."""
