"""One agent asks another: every check in its order, every outcome written down."""
