"""Messages: appended under the thread's lock, read by seq in both directions."""
