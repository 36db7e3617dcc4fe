"""The scriptable twin of the console: the same operations by name, for scripts and for slow lines."""
