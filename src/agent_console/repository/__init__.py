"""The seam between those who ask and those who know: operations, the port, and its two implementations."""
