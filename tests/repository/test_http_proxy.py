"""A proxy stands between this machine and others, never between a program and the server beside it."""

import pytest

from agent_console.domain.records import Nothing
from agent_console.repository.http.repository import HttpRepository
from agent_console.repository.operations import ME
from tests.support.fleet import Fleet
from tests.support.serving import serving

NOBODY = "http://127.0.0.1:9"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_a_server_on_this_machine_is_asked_without_the_proxy(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, NOBODY)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)

    async with serving(fleet.working) as url:
        beside = url.replace("127.0.0.1", host)
        async with HttpRepository(beside, fleet.token("ana@example.com")) as repository:
            me = await repository.call(ME, Nothing())

    assert me.name == "Ana Costa"
