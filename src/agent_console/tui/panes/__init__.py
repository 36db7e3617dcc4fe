"""One file per pane: what it lists, how a row reads, what its detail tells."""
