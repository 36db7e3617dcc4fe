"""A client that a public generator makes from the description, at work on the real server."""

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from agent_console.repository.postgres.repository import Backend
from agent_console.server.app import build_app
from tests.server.stage import served
from tests.support.fleet import Fleet

NAME = "client_of_agent_console"
# Installed by the Makefile from tests/server/generator.txt, apart from our own packages.
GENERATOR = Path(sys.prefix) / "generator"
SECONDS = 240


@pytest.fixture
def generated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The package that openapi-python-client writes; what it does not understand is a failure."""
    described, configured = tmp_path / "openapi.json", tmp_path / "generator.yml"
    described.write_text(json.dumps(build_app(Backend("host=/nowhere dbname=x")).openapi()))
    configured.write_text("post_hooks: []\n")
    files = ("--path", described, "--config", configured, "--output-path", tmp_path / NAME)
    words = ("-m", "openapi_python_client", "generate", "--meta", "none", "--fail-on-warning", *files)
    ended = subprocess.run(
        (sys.executable, *words),
        env=os.environ | {"PYTHONPATH": str(GENERATOR)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=SECONDS,
        check=False,
        text=True,
    )
    assert ended.returncode == 0, ended.stdout
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module(NAME)
    for name in [name for name in sys.modules if name.partition(".")[0] == NAME]:
        del sys.modules[name]


async def test_it_lists_creates_and_understands_a_refusal(generated: ModuleType, fleet: Fleet) -> None:
    models, jobs = importlib.import_module(f"{NAME}.models"), f"{NAME}.api.jobs"
    listing, creating, reading = (
        importlib.import_module(f"{jobs}.{name}") for name in ("jobs_list", "jobs_create", "jobs_get")
    )
    payload = models.NewJobPayload.from_dict({"pages": [1, 2]})
    wanted = models.NewJob(type_="generated", payload=payload, priority=7)

    async with (
        served(build_app(Backend(fleet.working))) as url,
        generated.AuthenticatedClient(base_url=url, token=fleet.token("ana@example.com")) as ana,
        generated.AuthenticatedClient(base_url=url, token=fleet.token("vera@example.com")) as vera,
    ):
        made = await creating.asyncio(client=ana, body=wanted)
        listed = await listing.asyncio(client=ana, limit=1)
        read = await reading.asyncio(made.id, client=ana)
        refused = await creating.asyncio_detailed(client=vera, body=wanted)

    assert (made.type_, made.priority) == ("generated", 7)
    assert (len(listed.items), bool(listed.next_)) == (1, True)
    assert read.payload.to_dict() == {"pages": [1, 2]}
    assert (int(refused.status_code), refused.parsed.code) == (403, "forbidden")
