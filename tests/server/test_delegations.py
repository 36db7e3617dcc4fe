"""A delegation as an agent in another language sees it: the status tells whether it has happened."""

import httpx
import pytest

from agent_console.domain.secrets import Secret
from tests.support.asking import add_route
from tests.support.conversations import add_thread, let_in
from tests.support.fleet import Fleet
from tests.support.serving import serving


@pytest.mark.rule("R002-74", "R002-75", "R002-76", "R002-77")
async def test_made_is_201_waiting_is_202_and_blocked_is_403(fleet: Fleet) -> None:
    thread_id = add_thread(fleet)
    let_in(fleet, thread_id, "atlas", write=True)
    add_route(fleet, "atlas", "beacon")
    add_route(fleet, "atlas", "cartographer", "requires_human_approval")
    key = Secret.mint(fleet.team_id(), fleet.agent_id("atlas"))
    fleet.execute("update agents set api_key_hash = %s where name = 'atlas'", key.hash)
    headers = {"Authorization": f"Bearer {key.word}"}

    answers = {}
    async with (
        serving(fleet.working) as url,
        httpx.AsyncClient(base_url=url, headers=headers, timeout=60) as client,
    ):
        for name in ("beacon", "cartographer", "dispatch"):
            asked = {"to": str(fleet.agent_id(name)), "thread_id": str(thread_id), "input": "please"}
            answers[name] = await client.post("/v1/delegations", json=asked)

    assert [answer.status_code for answer in answers.values()] == [201, 202, 403]
    assert answers["beacon"].json()["run"]["id"].startswith("run_")
    assert answers["cartographer"].json()["approval"]["id"].startswith("apr_")
    assert answers["dispatch"].json()["code"] == "forbidden"
