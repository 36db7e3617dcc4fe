"""Whoever is told what is wrong with a value is not told how Python calls it."""

from typing import Any

import pytest
from pydantic import ValidationError

from agent_console.domain.audit_trail import AuditQuery
from agent_console.domain.jobs import NewJob
from agent_console.domain.problems import problem_of
from agent_console.domain.tokens import NewWorkerToken
from agent_console.domain.working import Claim

A_TIME = "has to be a time with its zone, such as 2026-11-01T00:00:00Z"


@pytest.mark.parametrize(
    ("model", "given", "told"),
    [
        (NewJob, {"payload": {}}, "has to be given"),
        (NewJob, {"type": "x", "payload": {}, "colour": "red"}, "is not known here"),
        (NewJob, {"type": "x", "payload": [1]}, "has to be a JSON object"),
        (NewJob, {"type": "x", "payload": {}, "priority": "many"}, "has to be a whole number"),
        (NewJob, {"type": "x", "payload": {}, "max_attempts": 0}, "has to be greater than or equal to 1"),
        (NewJob, {"type": "x", "payload": {}, "signed": "perhaps"}, "has to be yes or no"),
        (NewWorkerToken, {"worker_id": ""}, "has to have at least 1 character"),
        (NewWorkerToken, {"worker_id": "atlas", "allowed_job_types": 7}, "has to be a list"),
        (Claim, {"worker_id": " "}, "must not be blank"),
        (Claim, {"wait_seconds": "long"}, "has to be a number"),
        (AuditQuery, {"since": "yesterday"}, A_TIME),
        (AuditQuery, {"since": "2026-11-01 00:00"}, A_TIME),
    ],
)
def test_a_fault_is_told_in_words_for_whoever_made_it(model: Any, given: dict[str, object], told: str) -> None:
    with pytest.raises(ValidationError) as refused:
        model.model_validate(given)

    assert [problem_of(found) for found in refused.value.errors()] == [told]
