"""Runs: their lists, one run, and the tree of who asked whom."""
