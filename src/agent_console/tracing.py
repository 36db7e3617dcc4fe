"""Spans for an OpenTelemetry collector, for who has one.

They are made when OTEL_EXPORTER_OTLP_ENDPOINT (or the one for traces alone) names a collector and the extra `otel`
is installed; else nothing of it is imported. The other variables of OpenTelemetry count too. A span is told when
its work is over, because the trace that a request belongs to may be known only by then.
"""

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Thread
from time import time_ns
from typing import TYPE_CHECKING
from uuid import UUID

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
# Who stops a program does not wait long for a collector that is away.
TIMEOUTS = ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT")
SECONDS = 3.0
SPAN_DIGITS = 16

log = logging.getLogger("agent_console.tracing")


def traceparent(trace_id: UUID, run_id: UUID) -> str:
    """A run as W3C trace context: whatever the runs of one tree do, and wherever, belongs to one trace."""
    return f"00-{trace_id.hex}-{run_id.hex[-SPAN_DIGITS:]}-01"


@dataclass(frozen=True)
class Work:
    """What was done, and since when; `under` is the trace context that it belongs to, if any."""

    name: str
    began_ns: int
    under: str | None
    facts: Mapping[str, str | int]
    failure: str | None = None


@dataclass(frozen=True)
class Traces:
    provider: "TracerProvider"

    def tell(self, work: Work, *, by_server: bool) -> None:
        """A work that ends now. Nobody waits: it is sent with others, in the background."""
        from opentelemetry.trace import SpanKind, StatusCode
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        under = {} if work.under is None else {"traceparent": work.under}
        span = self.provider.get_tracer("agent_console").start_span(
            work.name,
            TraceContextTextMapPropagator().extract(under),
            kind=SpanKind.SERVER if by_server else SpanKind.CONSUMER,
            attributes=work.facts,
            start_time=work.began_ns,
        )
        if work.failure is not None:
            span.set_status(StatusCode.ERROR, work.failure)
        span.end(time_ns())

    def close(self) -> None:
        """Send what is left, and wait for it as long as one should; the thread of one that hangs ends with us."""
        sending = Thread(target=self.provider.shutdown, daemon=True, name="last-spans")
        sending.start()
        sending.join(SECONDS)


def traces_of(service: str) -> Traces | None:
    """None when nobody wants spans; `service` is what the program is called unless OTEL_SERVICE_NAME says."""
    if not any(os.environ.get(name) for name in ENDPOINTS):
        return None
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ModuleNotFoundError as error:
        log.warning("A collector is named, but %s is missing: pip install 'agent-console[otel]'", error.name)
        return None
    patience = None if any(os.environ.get(name) for name in TIMEOUTS) else SECONDS
    named = {"service.name": os.environ.get("OTEL_SERVICE_NAME", service)}
    provider = TracerProvider(resource=Resource.create(named), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(timeout=patience)))
    return Traces(provider)
