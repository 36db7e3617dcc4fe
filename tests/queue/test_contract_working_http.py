"""What agents in any language send: a text that can't be stored is refused, and its field is named."""

import httpx
import pytest

from tests.queue.crew import Row, key_of
from tests.support.fleet import Fleet
from tests.support.serving import serving

JOB = "job_01h455vb4pex5vsknk084sn02q"
UNSTORABLE = [
    ("progress", '{"attempt": 1, "stage": "a\\u0000b"}', "stage"),
    ("log", '{"attempt": 1, "events": [{"message": "ok"}, {"message": "a\\u0000b"}]}', "events.1.message"),
    ("log", '{"attempt": 1, "events": [{"message": "x", "payload": {"a": ["\\u0000"]}}]}', "events.0.payload"),
    ("complete", '{"attempt": 1, "result": {"a\\u0000": 1}}', "result"),
    ("complete", '{"attempt": 1, "result": {"a": NaN}}', "result"),
    ("complete", '{"attempt": 1, "result_summary": "\\u0000"}', "result_summary"),
    ("complete", '{"attempt": 1, "artifacts_path": "a\\u0000"}', "artifacts_path"),
    ("fail", '{"attempt": 1, "error": "a\\u0000"}', "error"),
    ("fail", '{"attempt": 1, "error": "x", "error_code": "a\\u0000"}', "error_code"),
    ("acknowledge", '{"attempt": 1, "message": "a\\u0000"}', "message"),
]


@pytest.mark.rule("U003-5")
async def test_what_can_not_be_stored_is_refused_by_name(quiet: Fleet) -> None:
    headers = {"Authorization": f"Bearer {key_of(quiet, 'atlas').word}", "Content-Type": "application/json"}
    refused: list[Row] = []

    async with (
        serving(quiet.working) as url,
        httpx.AsyncClient(base_url=url, headers=headers, timeout=60) as client,
    ):
        for report, body, _ in UNSTORABLE:
            answer = await client.post(f"/v1/jobs/{JOB}/{report}", content=body)
            said = answer.json()
            field = said["details"]["fields"][0]["field"]
            refused.append({"status": answer.status_code, "code": said["code"], "field": field})
        claimed = await client.post("/v1/claims", content='{"allowed_types": ["a\\u0000b"]}')

    assert refused == [{"status": 422, "code": "invalid", "field": field} for *_, field in UNSTORABLE]
    assert claimed.status_code == 422
    assert claimed.json()["details"]["fields"][0]["field"] == "allowed_types"
