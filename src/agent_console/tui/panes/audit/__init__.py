"""The audit pane: the trail as it grows, its filters and its proof."""
