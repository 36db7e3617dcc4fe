"""The approvals pane: what waits for a person, and the decision."""
