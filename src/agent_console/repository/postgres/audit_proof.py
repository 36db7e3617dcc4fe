"""The chain of seals, recomputed."""
