"""A2A routes, each edit a new version."""
