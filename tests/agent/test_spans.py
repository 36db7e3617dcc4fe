"""With a collector, what server and agents do for a run is one trace; without one, nothing is there for it."""

import logging
import subprocess
import sys
from collections.abc import Iterator

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from agent_console.domain.records import Nothing
from agent_console.domain.runs import NewRun
from agent_console.repository.operations import ME
from agent_console.repository.operations.runs import RUNS_START
from agent_console.tracing import traces_of
from tests.agent.stage import Stage
from tests.support.collector import Collector, collecting
from tests.support.conversations import add_thread

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
NOTHING_IMPORTED = """
import sys
import agent_console.agent
from agent_console.tracing import traces_of
assert traces_of("agent-console-agent") is None
print([name for name in sys.modules if name.startswith("opentelemetry")])
"""


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    """Named to every server and agent that is started after it."""
    with collecting() as collector:
        monkeypatch.setenv(ENDPOINT, collector.url)
        yield collector


async def test_a_run_is_one_trace_from_the_request_to_the_end_of_its_job(
    collector: Collector, stage: Stage
) -> None:
    thread_id = add_thread(stage.fleet, "ole@example.com")
    async with stage.caller() as ole:
        await ole.call(ME, Nothing())
        run = await ole.call(
            RUNS_START, NewRun(thread_id=thread_id, target_agent_id=stage.fleet.agent_id("atlas"))
        )
    assert run.job_id is not None
    assert run.trace_id is not None

    async with stage.working(stage.shell("exit 3")):
        await stage.ended(run.job_id)
    await stage.stop_server()

    asked, worked = collector.named(RUNS_START.name), collector.named("job agent_run")
    for span in (asked, worked):
        assert (span.trace_id, span.parent_span_id) == (run.trace_id.bytes, run.id.bytes[-8:])
        assert 0 < span.start_time_unix_nano <= span.end_time_unix_nano
    assert (asked.status.code, worked.status.code) == (Status.STATUS_CODE_UNSET, Status.STATUS_CODE_ERROR)
    assert worked.status.message == "exit_3"
    assert collector.named(ME.name).trace_id != run.trace_id.bytes
    assert collector.services() == {"agent-console-server", "agent-console-agent"}


def test_without_a_collector_nothing_is_imported() -> None:
    said = subprocess.run(
        [sys.executable, "-c", NOTHING_IMPORTED], capture_output=True, text=True, timeout=60, check=False
    )

    assert (said.stdout.strip(), said.returncode) == ("[]", 0), said.stderr


def test_a_collector_without_the_extra_is_one_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(ENDPOINT, "http://127.0.0.1:1")
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace.export", None)

    with caplog.at_level(logging.WARNING):
        traces = traces_of("agent-console-server")

    assert traces is None
    assert "agent-console[otel]" in caplog.text
