"""Whatever is asked within the description, or just beside it, is answered within it.

Schemathesis makes the requests from the description. Few with every test run, many with HYPOTHESIS_PROFILE=prove.
"""

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeAlias
from uuid import UUID

import pytest
import schemathesis
import uvicorn
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.generation import GenerationMode
from schemathesis.schemas import BaseSchema
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from agent_console.domain.errors import AgentUnavailable
from agent_console.domain.ids import AgentId, Id, JobId, UserId
from agent_console.repository.operations import OPERATIONS, AnyOperation
from agent_console.repository.postgres.repository import Backend
from agent_console.server.allowed import Allowed
from agent_console.server.app import build_app
from agent_console.server.listening import address_of, http_config, listening_socket
from tests.server.stage import bearer, key_of
from tests.support.fleet import Fleet

# One process for all of them: each would make the description anew.
pytestmark = pytest.mark.xdist_group("described")

EXAMPLES = 40 if os.environ.get("HYPOTHESIS_PROFILE") == "prove" else 2
CHECKS = [
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
NOUNS = sorted({operation.noun for operation in OPERATIONS})
ADMINISTRATOR = "ana@example.com"

AnyCase: TypeAlias = schemathesis.Case[Any]
Known: TypeAlias = Mapping[str, Sequence[str]]


@cache
def description() -> BaseSchema:
    return schemathesis.openapi.from_dict(build_app(Backend("host=/nowhere dbname=x")).openapi())


@contextmanager
def served(fleet: Fleet) -> Iterator[str]:
    """The server in a thread of its own, because Hypothesis waits for nobody; it may be asked without end."""
    listening = listening_socket("127.0.0.1", 0)
    server = uvicorn.Server(http_config(build_app(Backend(fleet.working), allowed=Allowed(0, 0))))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield address_of(listening)
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


def known_ids(fleet: Fleet) -> Known:
    """Ids of what there is, by the field that names them: made up ones lead to nothing but 404."""

    def ids(kind: type[Id], statement: str) -> list[str]:
        return [str(kind.of(found)) for (found,) in fleet.execute(statement) if isinstance(found, UUID)]

    return {
        "agent_id": ids(AgentId, "select id from agents where name <> 'atlas'"),
        "job_id": ids(JobId, "select id from jobs"),
        "user_id": ids(UserId, f"select id from users where email <> '{ADMINISTRATOR}'"),
    }


# Hypothesis takes the server's use of random numbers, in its own thread, for ours.
@pytest.mark.filterwarnings("ignore:Do not use the `random` module")
@pytest.mark.parametrize("noun", NOUNS)
def test_every_answer_is_as_described(fleet: Fleet, noun: str) -> None:
    callers = [bearer(fleet.token(ADMINISTRATOR)), bearer(key_of(fleet, "atlas"))]
    known = known_ids(fleet)

    with served(fleet) as url:
        for operation in [operation for operation in OPERATIONS if operation.noun == noun]:
            ask(operation, url, callers, known)


def ask(operation: AnyOperation, url: str, callers: Sequence[dict[str, str]], known: Known) -> None:
    """Requests that keep to the description, and some that don't."""
    described = description()[operation.path][operation.verb.value.lower()]
    cases = st.one_of(*(described.as_strategy(generation_mode=mode) for mode in GenerationMode))

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases, caller=st.sampled_from(callers), place=st.integers(0, 9))
    def is_answered(case: AnyCase, caller: dict[str, str], place: int) -> None:
        for field in known.keys() & case.path_parameters.keys():
            if place < len(known[field]):
                case.path_parameters[field] = known[field][place]
        for values in (case.query, case.body):
            if isinstance(values, dict) and "wait_seconds" in values:
                values["wait_seconds"] = 0
        answer = case.call(base_url=url, headers=caller)
        # That an agent is away is no fault of the server's.
        assert answer.status_code < 500 or answer.json()["code"] == AgentUnavailable.code, answer.content
        case.validate_response(answer, checks=CHECKS)

    is_answered()
