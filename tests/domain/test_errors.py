"""The one family of errors."""

import pytest

from agent_console.domain.errors import ERRORS, NotFound


@pytest.mark.rule("U003-5", "U004-20", "R004-58")
def test_codes_statuses_and_exit_codes_are_the_contract() -> None:
    contract = {code: (kind.status, kind.exit_code) for code, kind in ERRORS.items()}

    assert contract == {
        "internal": (500, 1),
        "bad_request": (400, 2),
        "wrong_id": (400, 2),
        "unauthorized": (401, 1),
        "forbidden": (403, 1),
        "not_found": (404, 1),
        "conflict": (409, 1),
        "not_owner": (409, 1),
        "too_large": (413, 2),
        "invalid": (422, 2),
        "rate_limited": (429, 1),
        "agent_unavailable": (503, 1),
        "cannot_connect": (503, 3),
        "database_unavailable": (503, 3),
        "schema_mismatch": (503, 3),
        "timed_out": (504, 3),
        "config": (400, 2),
    }


def test_an_error_survives_the_journey_through_its_body() -> None:
    error = NotFound("There is no job.", hint="List them.", details={"id": "job_x"})

    body = error.body()
    again = ERRORS[str(body["code"])](str(body["message"]), hint=str(body["hint"]), details={"id": "job_x"})

    assert type(again) is NotFound
    assert again.body() == body
    assert str(again) == "There is no job. List them."
