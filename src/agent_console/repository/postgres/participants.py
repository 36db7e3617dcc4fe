"""Who takes part in a thread, with which rights."""
