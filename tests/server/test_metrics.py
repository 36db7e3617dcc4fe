"""/metrics as Prometheus meets it: the official parser reads what a real server says."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
import uvicorn
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from agent_console.domain.duties import DUTY_RULES, DutyState
from agent_console.domain.jobs import NewJob
from agent_console.domain.secrets import Secret
from agent_console.repository.operations import JOBS_CREATE
from agent_console.repository.postgres.duties.declared import Duty
from agent_console.repository.postgres.duties.rounds import duties_done
from agent_console.repository.postgres.repository import Backend, open_direct
from agent_console.server.app import build_app
from agent_console.server.listening import address_of, listening_socket
from agent_console.server.metrics import MEDIA_TYPE, Family, duty_families
from tests.support.fleet import Fleet

HOSTILE = 'a"b\\c\nd{e="f"} é'


async def nothing_due(_: Backend) -> int:
    return 3


@asynccontextmanager
async def measured(fleet: Fleet, **headers: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a real server that tells its metrics and does one duty."""
    listening = listening_socket("127.0.0.1", 0)
    backend = Backend(fleet.working)
    app = build_app(backend)
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1))
    running = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        async with httpx.AsyncClient(base_url=address_of(listening), headers=headers) as client:
            assert (await client.get("/healthz")).status_code == 200
            async with duties_done(backend, [Duty("sweep", 3600.0, nothing_due)]) as app.state.duties:
                yield client
    finally:
        server.should_exit = True
        await running
        listening.close()


def bearer(fleet: Fleet, email: str = "vera@example.com") -> dict[str, str]:
    return {"Authorization": f"Bearer {fleet.token(email)}"}


def samples(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    found: list[Sample] = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    values = {(sample.name, frozenset(sample.labels.items())): float(sample.value) for sample in found}
    assert len(values) == len(found), "a sample is told twice"
    return values


def value(text: str, name: str, **labels: str) -> float:
    return samples(text)[name, frozenset(labels.items())]


async def test_the_queue_the_pool_and_the_process_are_told(fleet: Fleet) -> None:
    async with measured(fleet, **bearer(fleet)) as client:
        answer = await client.get("/metrics")
    told = answer.text

    assert answer.headers["content-type"] == MEDIA_TYPE
    assert value(told, "agent_console_jobs", team="example", status="queued") == 6
    assert value(told, "agent_console_jobs", team="example", status="running") == 5
    assert value(told, "agent_console_jobs_by_type", team="example", type="deploy", state="ended") == 1
    assert value(told, "agent_console_agents", team="example", presence="error") == 1
    assert value(told, "agent_console_jobs_created_total", team="example") == 25
    assert value(told, "agent_console_claim_wait_seconds_count", team="example") == 0
    assert value(told, "agent_console_oldest_queued_seconds", team="example") >= 0
    assert value(told, "agent_console_open_streams") == 0
    assert value(told, "process_start_time_seconds") > 1_700_000_000


async def test_every_family_says_what_it_is(fleet: Fleet) -> None:
    async with measured(fleet, **bearer(fleet)) as client:
        told = (await client.get("/metrics")).text

    families = list(text_string_to_metric_families(told))
    assert all(family.documentation for family in families)
    assert {family.type for family in families} == {"gauge", "counter", "summary"}
    counters = {name for name, _ in samples(told) if name.endswith("_total")}
    assert {f"{family.name}_total" for family in families if family.type == "counter"} == counters
    assert told.endswith("\n")


async def test_what_a_duty_did_in_this_process_is_told(fleet: Fleet) -> None:
    async with asyncio.timeout(30), measured(fleet, **bearer(fleet)) as client:
        told = ""
        while 'agent_console_duty_rounds_total{duty="sweep"} 1' not in told:
            told = (await client.get("/metrics")).text

    assert value(told, "agent_console_duty_rows_total", duty="sweep") == 3
    assert value(told, "agent_console_duty_failures_total", duty="sweep") == 0


async def test_a_server_soon_has_no_duty_that_is_late(fleet: Fleet) -> None:
    names = [rule.name for rule in DUTY_RULES]
    async with asyncio.timeout(30), measured(fleet, **bearer(fleet)) as client:
        told = (await client.get("/metrics")).text
        while any(value(told, "agent_console_duty_late", duty=name) for name in names):
            told = (await client.get("/metrics")).text

    last = "agent_console_duty_last_run_timestamp_seconds"
    assert all(value(told, last, duty=name) > 1_700_000_000 for name in names)


def test_a_duty_that_nobody_does_is_late_and_was_never_done() -> None:
    never = DutyState(
        name="seals", does="Seals.", every_seconds=0.5, late=True, failing=False,
        done_at=None, done_seconds_ago=None, done_by=None, seconds=None,
        rounds=0, rows=0, failures=0, failed_at=None, error=None,
    )  # fmt: skip

    told = "".join(family.text() for family in duty_families({}, [never]))

    assert value(told, "agent_console_duty_late", duty="seals") == 1
    assert value(told, "agent_console_duty_last_run_timestamp_seconds", duty="seals") == 0


async def test_words_from_outside_cannot_forge_a_sample(fleet: Fleet) -> None:
    async with open_direct(fleet.working, team="example", user="ana@example.com") as repository:
        await repository.call(JOBS_CREATE, NewJob(type=HOSTILE, payload={}))

    async with measured(fleet, **bearer(fleet)) as client:
        told = (await client.get("/metrics")).text

    assert value(told, "agent_console_jobs_by_type", team="example", type=HOSTILE, state="waiting") == 1


def test_help_is_escaped_too() -> None:
    (family,) = text_string_to_metric_families(Family("a", "gauge", "one\ntwo \\ three").add(1.5).text())

    assert family.documentation == "one\ntwo \\ three"
    assert [sample.value for sample in family.samples] == [1.5]


async def test_an_open_stream_is_counted_while_it_lasts(fleet: Fleet) -> None:
    async with asyncio.timeout(30), measured(fleet, **bearer(fleet)) as client:
        async with client.stream("GET", "/v1/changes"):
            during = (await client.get("/metrics")).text
        after = during
        while value(after, "agent_console_open_streams"):
            after = (await client.get("/metrics")).text

    assert value(during, "agent_console_open_streams") == 1


@pytest.mark.parametrize("credential", ["nobody", "agent"])
async def test_only_a_persons_credential_opens_it_from_this_machine_too(fleet: Fleet, credential: str) -> None:
    key = Secret.mint(fleet.team_id(), fleet.agent_id("atlas"))
    fleet.execute("update agents set api_key_hash = %s where name = 'atlas'", key.hash)
    headers = {"Authorization": f"Bearer {key.word}"} if credential == "agent" else {}

    async with measured(fleet, **headers) as client:
        answer = await client.get("/metrics")

    assert answer.status_code == (403 if credential == "agent" else 401)
    assert "agent_console_jobs" not in answer.text


async def test_another_teams_numbers_are_not_told(fleet: Fleet) -> None:
    fleet.add_team("other")

    async with measured(fleet, **bearer(fleet, "admin@other.example")) as client:
        told = (await client.get("/metrics")).text

    assert 'team="example"' not in told
    assert value(told, "agent_console_jobs", team="other", status="queued") == 0
