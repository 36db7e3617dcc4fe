"""Lanes: who may take which job, each condition by itself."""

from dataclasses import replace

import pytest

from agent_console.domain.identity import AuthSource, WorkerAuthContext
from agent_console.domain.ids import AgentId, ConnectorId, LaneId
from agent_console.domain.kinds import CredentialLocation
from agent_console.domain.lanes import Lane, lane_key

ATLAS, BEACON = AgentId.new(), AgentId.new()
MAIL = ConnectorId.new()
KEPT = "a921ef5a676c8f4efc760d8080097d84736c62371f5172af723b7c5b02458293"
ANYBODY = Lane(LaneId.new(), None, ("gpu",), "report", "house/roof", None, None)
ABLE = WorkerAuthContext(worker_id="w", auth_source=AuthSource.API_KEY, capabilities=frozenset({"gpu"}))


def why_not(lane: Lane, worker: WorkerAuthContext = ABLE, *connectors: ConnectorId) -> str | None:
    return lane.why_not(worker, ATLAS, frozenset(connectors))


def allowed(*, types: set[str] | None = None, repositories: set[str] | None = None) -> WorkerAuthContext:
    update = {
        "allowed_job_types": None if types is None else frozenset(types),
        "allowed_repositories": None if repositories is None else frozenset(repositories),
    }
    return ABLE.model_copy(update=update)


@pytest.mark.rule("R000-34")
def test_who_can_do_it_takes_it_and_who_lacks_something_is_told_what() -> None:
    assert why_not(ANYBODY) is None
    assert why_not(ANYBODY, ABLE.model_copy(update={"capabilities": frozenset()})) == "it lacks gpu"


def test_a_job_for_one_agent_is_for_no_other_and_asks_for_none_of_its_capabilities() -> None:
    assert why_not(replace(ANYBODY, bound_agent_id=BEACON)) == "bound to another agent"
    assert why_not(replace(ANYBODY, bound_agent_id=ATLAS, required_capabilities=("wings",))) is None


def test_a_credential_allows_the_types_it_names_none_when_it_names_none_and_all_without_a_word() -> None:
    assert why_not(ANYBODY, allowed(types={"report"})) is None
    for types in ({"crawl"}, set[str]()):
        assert why_not(ANYBODY, allowed(types=types)) == "its credential does not allow jobs of type report"


def test_a_credential_allows_the_repositories_it_names_and_so_never_a_job_without_one() -> None:
    assert why_not(ANYBODY, allowed(repositories={"house/roof"})) is None
    for repositories in ({"house/cellar"}, set[str]()):
        refused = why_not(ANYBODY, allowed(repositories=repositories))
        assert refused == "its credential does not allow the repository house/roof"
    without = replace(ANYBODY, repository=None)
    assert why_not(without) is None
    assert why_not(without, allowed(repositories={"x"})) == "its credential does not allow the repository (none)"


@pytest.mark.parametrize("bound", [None, ATLAS])
def test_a_connector_is_used_by_who_has_its_credentials(bound: AgentId | None) -> None:
    lane = replace(ANYBODY, connector_id=MAIL, bound_agent_id=bound)

    assert why_not(replace(lane, credentials=CredentialLocation.SERVER)) is None
    assert why_not(replace(lane, credentials=CredentialLocation.AGENT), ABLE, MAIL) is None
    lacking = why_not(replace(lane, credentials=CredentialLocation.AGENT), ABLE, ConnectorId.new())
    assert lacking == "it has no credentials for the connector"
    pending = why_not(replace(lane, credentials=CredentialLocation.PENDING), ABLE, MAIL)
    assert pending == "the connector has no credentials yet"


def test_jobs_share_a_lane_when_everything_that_decides_who_takes_them_is_the_same() -> None:
    keys = {
        lane_key(None, (), "report", None, None),
        lane_key(ATLAS, (), "report", None, None),
        lane_key(BEACON, (), "report", None, None),
        lane_key(None, ("gpu",), "report", None, None),
        lane_key(None, ("gpu", "disk"), "report", None, None),
        lane_key(None, (), "crawl", None, None),
        lane_key(None, (), "report", "house/roof", None),
        lane_key(None, (), "report", "", None),
        lane_key(None, (), "report", None, MAIL),
        lane_key(None, (), "report", None, ConnectorId.new()),
    }

    assert len(keys) == 10
    assert lane_key(None, ("gpu",), "report", None, None) in keys
    assert all(len(key) == 64 for key in keys)


def test_a_job_of_today_finds_the_lane_that_was_made_years_ago() -> None:
    assert lane_key(None, ("gpü",), "report", "house/roof", None) == KEPT
