"""State machines: what the tables hold is allowed, everything else is a conflict."""

from itertools import product

import pytest

from agent_console.domain.errors import Conflict
from agent_console.domain.states import (
    JOB_FINAL,
    JOB_MOVES,
    LIFECYCLE_MOVES,
    RUN_MOVES,
    JobStatus,
    Lifecycle,
    RunStatus,
    is_final,
    require_move,
)

# Written out from the design once more, by name, so that a slip in the table shows.
JOB = """
scheduled>assigned scheduled>cancelled queued>assigned queued>cancelled
assigned>running assigned>queued assigned>dead_letter assigned>cancelled assigned>failed
running>running running>succeeded running>failed running>queued running>dead_letter running>cancelled
"""
RUN = """
queued>running queued>failed queued>cancelled queued>timeout
running>succeeded running>failed running>cancelled running>timeout
"""
LIFECYCLE = "1>2 1>7 2>3 2>4 2>5 2>7 3>2 3>4 3>5 3>7 4>2 4>1 4>5 4>7 5>6 5>7 6>1 7>6 7>1"


def pairs(text: str) -> set[tuple[str, str]]:
    return {(left, right) for left, _, right in (move.partition(">") for move in text.split())}


@pytest.mark.rule("R000-93")
def test_jobs_move_only_as_the_design_says() -> None:
    for now, wanted in product(JobStatus, repeat=2):
        if (now.value, wanted.value) in pairs(JOB):
            require_move(JOB_MOVES, "The job", now, wanted)
        else:
            with pytest.raises(Conflict):
                require_move(JOB_MOVES, "The job", now, wanted)


def test_runs_move_only_as_the_design_says() -> None:
    for now, wanted in product(RunStatus, repeat=2):
        assert (wanted in RUN_MOVES[now]) == ((now.value, wanted.value) in pairs(RUN))


@pytest.mark.rule("U004-1")
def test_lifecycles_move_only_as_the_design_says() -> None:
    for now, wanted in product(Lifecycle, repeat=2):
        allowed = (str(now.value), str(wanted.value)) in pairs(LIFECYCLE)
        assert (wanted in LIFECYCLE_MOVES[now]) == allowed


@pytest.mark.rule("R003-28", "R003-29", "R003-30")
def test_final_states_lead_nowhere_and_say_so() -> None:
    assert {status.value for status in JOB_FINAL} == {"succeeded", "failed", "dead_letter", "cancelled"}
    assert is_final(JOB_MOVES, JobStatus.SUCCEEDED)
    with pytest.raises(Conflict) as refused:
        require_move(JOB_MOVES, "Job job_x", JobStatus.SUCCEEDED, JobStatus.QUEUED)
    assert refused.value.message == "Job job_x is succeeded and can't become queued."
    assert refused.value.hint == "This state is final."


def test_a_refusal_says_what_is_possible() -> None:
    with pytest.raises(Conflict) as refused:
        require_move(JOB_MOVES, "The job", JobStatus.QUEUED, JobStatus.SUCCEEDED)

    assert refused.value.hint == "From here it can become: assigned, cancelled."


def test_the_american_spelling_is_read() -> None:
    assert JobStatus("canceled") is JobStatus.CANCELLED
    assert RunStatus("canceled") is RunStatus.CANCELLED
    with pytest.raises(ValueError, match="is not a valid"):
        JobStatus("cancel")
