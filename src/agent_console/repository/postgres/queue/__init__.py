"""The queue: jobs put in, claimed, reported on and ended, and what operators do to them."""
