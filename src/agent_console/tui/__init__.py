"""The console: panes over the Repository port, knowing nothing of what is behind it."""
