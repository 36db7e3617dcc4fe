"""Threads: made, listed, archived; only whom a thread's rights let in learns that it is there."""
