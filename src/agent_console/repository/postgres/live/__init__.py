"""What changes, told at once to whoever reads along."""
