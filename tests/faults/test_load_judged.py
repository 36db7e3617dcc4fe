"""The hour of load would see it: what it watches lives long enough to grow, and who was killed is excused once."""

import os
import subprocess
import time
from datetime import UTC, datetime, timedelta

import pytest
from bench.fleet import was_killed
from bench.fleet_stage import Fleet
from bench.load import DATABASE, EARLY, SERVER, planned
from bench.load_watch import FLAT, Sample, grown, hourly
from bench.machine_load import Share
from bench.plots import ticks

HOUR = 3600.0
KILLED_AT = datetime(2026, 11, 18, 9, tzinfo=UTC)


def growing_in(name: str, by: float) -> list[Sample]:
    """An hour in which one thing grows by so much, steadily, and nothing else does."""
    usual = dict.fromkeys(Sample.__dataclass_fields__, 100.0)
    return [Sample(**usual | {"minutes": n / 6, name: 100.0 + by * n / 360}) for n in range(360)]


def test_what_is_judged_by_its_growth_is_not_begun_anew_after_the_first_third() -> None:
    faults = list(planned(HOUR, 150.0))

    assert {kind for _, kind in faults} == set(EARLY)
    assert max(due for due, kind in faults if kind in (SERVER, DATABASE)) < HOUR / 3
    assert HOUR - 60 - 150 < faults[-1][0] <= HOUR - 60


@pytest.mark.parametrize("name", FLAT)
def test_steady_growth_is_seen_and_told_by_the_hour(name: str) -> None:
    samples = growing_in(name, 4 * FLAT[name])

    then, now = grown(samples, name)
    assert now > then + FLAT[name]
    assert hourly(samples, name) == pytest.approx(4 * FLAT[name])
    assert [grown(samples, other) for other in FLAT if other != name] == [(100.0, 100.0)] * (len(FLAT) - 1)


@pytest.mark.parametrize(
    ("claimed", "lost", "excused"), [(-30, 30, True), (1, 60, True), (-90, -30, False), (10, 70, False)]
)
def test_a_lease_is_excused_by_a_kill_that_came_between_claim_and_loss(
    claimed: int, lost: int, excused: bool
) -> None:
    fleet = Fleet("", "", "", "", killed={"atlas": [KILLED_AT]})
    times = KILLED_AT + timedelta(seconds=claimed), KILLED_AT + timedelta(seconds=lost)

    assert was_killed(fleet, "atlas", *times) is excused
    assert not was_killed(fleet, "beacon", *times)


def test_what_others_use_is_not_what_the_proof_itself_uses() -> None:
    own, sleeping = Share({os.getpid()}), subprocess.Popen(["sleep", "60"])
    with sleeping:
        foreign = Share({sleeping.pid})
        began = time.process_time()
        while time.process_time() < began + 0.5:
            continue
        (ours, others), (theirs, we) = own.since_last(), foreign.since_last()
        sleeping.kill()

    assert ours > 0.05
    assert theirs < 0.05
    assert we > others


@pytest.mark.parametrize(
    ("most", "marks"), [(0.0, [0.0, 1.0]), (3.2, [0.0, 2.0, 4.0]), (700.0, [0.0, 250.0, 500.0, 750.0])]
)
def test_the_marks_of_a_scale_are_round_and_reach_the_highest(most: float, marks: list[float]) -> None:
    assert ticks(most, 3) == marks
