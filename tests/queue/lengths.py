"""How long the proofs are: short with every test run, long with HYPOTHESIS_PROFILE=prove."""

import os

from hypothesis import Phase

PROVING = os.environ.get("HYPOTHESIS_PROFILE") == "prove"

EXAMPLES, STEPS = (300, 60) if PROVING else (10, 25)
DRAINED = 20_000 if PROVING else 1_000
# Making an example smaller runs it hundreds of times.
PHASES = (Phase.generate, Phase.shrink) if PROVING else (Phase.generate,)
