"""The demo as a command starts it: a process for its server, one for its agents, and the console on them."""
