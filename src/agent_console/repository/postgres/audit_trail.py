"""The audit trail as it is read."""
