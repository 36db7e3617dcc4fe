"""What somebody has to do while time passes: each duty, whose turn it is, and how it goes."""
