"""agent-console: the operator's console for fleets of agents, and the control plane behind it."""

__version__ = "0.1.0"
