"""The trail as a file, a cell of which is plain text for every spreadsheet; and what is asked of it."""

import pytest
from pydantic import ValidationError

from agent_console.domain.audit_export import as_csv, harmless_cell
from agent_console.domain.audit_proof import Pruned, PrunedMonth
from agent_console.domain.audit_trail import AuditFilter, AuditRow, Checkpoint
from agent_console.domain.ids import AuditId
from tests.support.fleet import AT


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("=1+1", "'=1+1"),
        ("+1", "'+1"),
        ("-1", "'-1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'\\u0009=1"),
        ("\r=1", "'\\u000d=1"),
        ("\n=1", "'\\u000a=1"),
        ("  =1", "'  =1"),
        ("\uff1d1", "'\uff1d1"),
        ("\x1b[2J", "\\u001b[2J"),
        ("a=1", "a=1"),
        ("", ""),
        (None, ""),
        (-5, "-5"),
        (True, "true"),
        ({"ü": 1}, '{"ü": 1}'),
        ({"b": 1, "a": "=x"}, '{"a": "=x", "b": 1}'),
    ],
)
def test_a_cell_is_never_a_formula(value: object, cell: str) -> None:
    assert harmless_cell(value) == cell


def test_only_the_first_part_of_a_table_has_a_header_and_every_act_has_a_line() -> None:
    act = AuditRow.model_validate(
        {
            **dict.fromkeys(AuditRow.model_fields),
            **{"id": AuditId.new(), "seq": 7, "created_at": "2026-11-16T03:00:00Z", "actor_type": "system"},
            **{
                "actor": "agent-console",
                "action": "audit.prune",
                "resource_type": "month",
                "resource_id": "=2026",
            },
            **{"metadata": {}, "event_hash": "0" * 64},
        }
    )

    first, second = as_csv([act, act], header=True), as_csv([act], header=False)

    assert [line.split(",")[0] for line in first.splitlines()] == ['"id"', f'"{act.id}"', f'"{act.id}"']
    assert second == first.splitlines(keepends=True)[2]
    assert '"\'=2026"' in second


def test_acts_are_looked_for_in_a_time_that_does_not_run_backwards() -> None:
    early, late = "2026-11-16T03:00:00Z", "2026-11-16T04:00:00Z"

    for given in (
        {"since": early, "until": late},
        {"since": early, "until": early},
        {"since": late},
        {"until": early},
    ):
        AuditFilter.model_validate(given)
    with pytest.raises(ValidationError, match="must not lie after"):
        AuditFilter.model_validate({"since": late, "until": early})


def test_what_was_dropped_in_several_steps_is_told_together() -> None:
    steps = [Pruned(done=1, months=(PrunedMonth(month=month, rows=2),)) for month in ("2026-01", "2026-02")]

    together = steps[1].following(steps[0])

    assert steps[0].following(None) == steps[0]
    assert (together.done, [one.month for one in together.months]) == (2, ["2026-01", "2026-02"])


def test_the_last_checkpoint_is_told_though_nothing_was_dropped_after_it() -> None:
    first, second = (
        Checkpoint(month=month, first_position=1, last_position=2, last_hash="0" * 64, rows=2, created_at=AT)
        for month in ("2026-01", "2026-02")
    )
    steps = Pruned(done=1, checkpoint=first), Pruned(done=1, checkpoint=second), Pruned(done=1)

    assert steps[1].following(steps[0]).checkpoint == second
    assert steps[2].following(steps[1].following(steps[0])).checkpoint == second
