"""What a console has seen of a queue in ten minutes: for pictures."""

import math
from datetime import timedelta

from agent_console.domain.queue_stats import QueueTotals
from agent_console.tui.history import History, Sample
from tests.support.fleet import AT
from tests.tui_console.test_overview_course import stats


def course() -> History:
    """Ten minutes, two of which nobody saw."""
    history = History()
    done = failed = lost = claims = 0
    waited = 0.0
    for step in range(121):
        at = AT - timedelta(seconds=5 * (120 - step))
        speed = 2.0 + 2.0 * math.sin(step / 9)
        done, claims = done + round(speed), claims + round(speed) + 1
        failed, lost = failed + (step % 40 == 0), lost + (step in (70, 71))
        waited += (round(speed) + 1) * (0.4 + (3.0 if 60 < step < 75 else 0.0))
        if 40 < step < 64:
            continue
        totals = QueueTotals(
            created=0, claims=claims, completions=done, failures=failed, retries=0, dead_letters=0,
            cancellations=0, lease_losses=lost, claim_wait_seconds=waited,
        )  # fmt: skip
        history = history.with_sample(Sample(at, stats(at, totals, 20.0 + step), 0.2 + (step > 110) * step / 20))
    return history
