"""What a pane holds of its list while pages come and go: by id, by seq, from place to place, or in one piece."""
