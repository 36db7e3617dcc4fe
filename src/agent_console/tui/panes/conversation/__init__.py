"""Threads: their list, and one as a conversation: pages by seq in both directions, search, and writing."""
