"""Delegations that wait for a person, and the one decision each of them gets."""
