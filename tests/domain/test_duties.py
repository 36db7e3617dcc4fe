"""What an operator is told of duties that nobody does."""

from datetime import UTC, datetime

import pytest

from agent_console.domain.duties import DUTY_RULES, LATE_SECONDS, DutyRule, DutyState, duty_warnings

AT = datetime(2026, 3, 1, 3, 0, tzinfo=UTC)


def state(name: str, *, ago: float | None = 1.0, late: bool = False, error: str | None = None) -> DutyState:
    return DutyState(
        name=name,
        does="Does it.",
        every_seconds=1.0,
        late=late,
        failing=error is not None,
        done_at=None if ago is None else AT,
        done_seconds_ago=ago,
        done_by=None if ago is None else "db1:7",
        seconds=None if ago is None else 0.1,
        rounds=1,
        rows=0,
        failures=0 if error is None else 1,
        failed_at=None if error is None else AT,
        error=error,
    )


def test_nothing_is_said_while_all_is_well() -> None:
    assert duty_warnings([state("seals"), state("jobs")]) == ()


def test_one_line_says_that_nobody_does_any() -> None:
    late = [state("seals", ago=7300, late=True), state("jobs", ago=7200, late=True)]

    (warning,) = duty_warnings(late)

    assert warning.startswith("nobody has done the duties for 2h: run a server")
    assert duty_warnings([state("seals", ago=None, late=True)])[0].startswith("nobody has done the duties so far")


def test_a_late_duty_and_one_that_fails_have_a_line_each() -> None:
    warnings = duty_warnings(
        [
            state("seals", ago=90, late=True),
            state("jobs", ago=None, late=True, error="no space left"),
            state("runs", error="a lock was waited for"),
            state("rest"),
        ]
    )

    assert warnings == (
        "duty seals is late, nobody has done it for 1m",
        "duty jobs is late, nobody has done it ever: no space left",
        "duty runs failed in its last round: a lock was waited for",
    )


@pytest.mark.parametrize(("every", "late_after"), [(0.5, LATE_SECONDS), (10.0, LATE_SECONDS), (60.0, 180.0)])
def test_late_is_three_rounds_and_half_a_minute_at_least(every: float, late_after: float) -> None:
    assert DutyRule("sweep", every, "Sweeps.").late_after_seconds == late_after


def test_each_duty_says_in_a_sentence_what_it_does() -> None:
    assert all(rule.does[0].isupper() and rule.does.endswith(".") for rule in DUTY_RULES)
    assert len({rule.does for rule in DUTY_RULES}) == len(DUTY_RULES)
