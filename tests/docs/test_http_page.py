"""What the page on HTTP tells to send is what the server takes."""

import hashlib
import hmac
import json
import re

import pytest

from agent_console.domain.ids import AgentId, JobId
from agent_console.repository.operations import OPERATIONS
from agent_console.repository.postgres.queue.signing import signature_of
from tests.docs.blocks import REPOSITORY

PAGE = (REPOSITORY / "docs" / "http.md").read_text(encoding="utf-8")
LINE = re.compile(r"^(GET|POST|PUT|PATCH|DELETE) (/v1/\S+) +(\{.*\})$", re.MULTILINE)
RESULT = re.compile(r"For the\s+result `(.*)`:\n")
ROW = re.compile(r"^\| (secret|signed|signature) \| `(.*)` \|$", re.MULTILINE)


def shown_requests() -> list[tuple[str, str, str]]:
    return LINE.findall(PAGE)


@pytest.mark.parametrize(("verb", "path", "body"), shown_requests(), ids=lambda part: part)
def test_every_request_that_is_shown_would_be_taken(verb: str, path: str, body: str) -> None:
    [operation] = [one for one in OPERATIONS if (one.verb.value, one.path) == (verb, path)]
    ids = {"job_id": JobId.new(), "agent_id": AgentId.new()}
    in_path = {name: ids[name] for name in re.findall(r"\{(\w+)\}", path)}

    given = json.loads(body.replace("job_…", str(JobId.new())))

    assert operation.request.model_validate(in_path | given)


def test_a_day_begins_with_coming_in_and_a_sign_of_life() -> None:
    assert [path for _, path, _ in shown_requests()][:3] == [
        "/v1/agents/register",
        "/v1/heartbeat",
        "/v1/claims",
    ]


def test_whoever_signs_as_the_page_tells_is_believed() -> None:
    found, shown = RESULT.search(PAGE), dict(ROW.findall(PAGE))
    assert found is not None
    result = json.loads(found[1])

    assert json.loads(shown["signed"]) == result
    assert signature_of(shown["secret"], result) == shown["signature"]
    by_hand = hmac.new(shown["secret"].encode(), shown["signed"].encode(), hashlib.sha256)
    assert by_hand.hexdigest() == shown["signature"]
