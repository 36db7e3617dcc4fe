"""Runs: what an agent was asked to do in a thread, and what that led to."""
