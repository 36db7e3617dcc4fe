"""Conversations: threads, who may do what in them, and what is said."""
