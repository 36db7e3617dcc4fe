"""The overview: what needs somebody, and how everything goes."""
