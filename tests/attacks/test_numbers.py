"""Numbers that nobody can keep, at every door of the server that takes one: refused by name."""

import math
import os
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import ValidationError

from agent_console.domain.connectors import ConnectorCredentials
from agent_console.domain.ids import ConnectorId
from agent_console.domain.records import LARGEST_COUNT, LARGEST_NUMBER
from tests.attacks.asked_about import valid
from tests.attacks.over_http import A_NUMBER, server_on_a_socket
from tests.attacks.request_fields import Field, Values, number_fields
from tests.attacks.two_teams import TwoTeams, our_team
from tests.support.fleet import Fleet

# Who keeps registering with what is no token is shut out in the end, so that is tried last.
DOORS = sorted(number_fields(), key=lambda door: door.operation.public)
NO_NUMBERS = ("NaN", "Infinity", "-Infinity", "1e400", "-1e400", "9" * 400, "9" * 10_000, "-" + "9" * 10_000)
# In the long form every one of them goes through every door.
IN_A_FIELD = len(NO_NUMBERS) if os.environ.get("HYPOTHESIS_PROFILE") == "prove" else 2
KEPT = "jobs", "job_events", "job_results", "messages", "agents", "connectors", "audit_log", "a2a_route_versions"
COUNTED = "select " + ", ".join(f"(select count(*) from {table})" for table in KEPT)


def numbers_for(door: Field[Any], turn: int) -> tuple[str, ...]:
    """All of them where anything may stand, some where only a number may."""
    if door.holds[-1] is dict:
        return NO_NUMBERS
    return tuple(NO_NUMBERS[(turn * IN_A_FIELD + step) % len(NO_NUMBERS)] for step in range(IN_A_FIELD))


async def test_what_is_no_number_is_refused_by_the_name_of_its_field(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    async with our_team(fleet, monkeypatch) as (stage, ours), server_on_a_socket(fleet) as serving:
        teams, known = TwoTeams(stage, ours, {}), dict[str, Values]()
        for door in DOORS:
            if door.operation.name not in known:
                known[door.operation.name] = await valid(teams, door)
        before, tried, wrong = fleet.execute(COUNTED), 0, []

        for turn, door in enumerate(DOORS):
            values = door.filled(known[door.operation.name], A_NUMBER)
            for number in numbers_for(door, turn):
                tried += 1
                answer = await serving.asked(door.operation, values, number=number)
                told = answer.json()
                named = str(told["details"].get("fields"))
                if (answer.status_code, told["code"]) != (422, "invalid") or door.path[-1] not in named:
                    wrong.append((door.name, number[:20], answer.status_code, answer.text[:300]))

        record_property("tried", tried)
        assert wrong == []
        assert len(DOORS) > 80
        assert fleet.execute(COUNTED) == before


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, 10**400, -(10**400), 10**9_999], ids=range(6))
def test_nobody_can_even_ask_with_it_who_needs_no_server(number: float) -> None:
    unnamed = []

    # How far a setting goes is a rule of its own, for everybody who asks.
    for door in (door for door in DOORS if door.name != "settings.set value"):
        with pytest.raises(ValidationError) as refused:
            door.operation.request.model_validate(door.filled({}, number))
        places = [fault["loc"] for fault in refused.value.errors(include_input=False)]
        unnamed += [] if any(door.path[-1] in place for place in places) else [door.name]

    assert unnamed == []


@pytest.mark.parametrize("half", ["\0", "\ud800"], ids=["nul", "half a character"])
def test_credentials_are_only_taken_as_they_could_be_read_again(half: str) -> None:
    with pytest.raises(ValidationError, match="credentials"):
        ConnectorCredentials(connector_id=ConnectorId.new(), credentials={"key": half})


@pytest.mark.parametrize("too_far", [LARGEST_COUNT + 1, LARGEST_NUMBER, LARGEST_NUMBER + 1])
async def test_an_attempt_that_nobody_can_have_made_is_not_the_databases_fault(fleet: Fleet, too_far: int) -> None:
    async with server_on_a_socket(fleet) as serving:
        answers = [
            await serving.atlas.post(
                f"/v1/jobs/job_01h455vb4pex5vsknk084sn02q/{report}", json={"attempt": too_far} | more
            )
            for report, more in (("start", {}), ("renew", {}), ("complete", {}), ("fail", {"error": "x"}))
        ]

    named = [(answer.status_code, answer.json()["details"]["fields"][0]["field"]) for answer in answers]
    assert named == [(422, "attempt")] * 4
