"""The agent pool: its list, and one agent with what it works on."""
