"""Search inside one thread."""
