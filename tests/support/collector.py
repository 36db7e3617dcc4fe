"""A collector of spans on the loopback interface, as OpenTelemetry's own is: OTLP over HTTP."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span


@dataclass
class Collector:
    url: str
    spans: list[tuple[str, Span]] = field(default_factory=list)
    """Each with the service that told it."""

    def named(self, name: str) -> Span:
        """The one span of this name."""
        (found,) = [span for _, span in self.spans if span.name == name]
        return found

    def services(self) -> set[str]:
        return {service for service, _ in self.spans}

    def take(self, body: bytes) -> None:
        for told in ExportTraceServiceRequest.FromString(body).resource_spans:
            (service,) = [one.value.string_value for one in told.resource.attributes if one.key == "service.name"]
            self.spans += [(service, span) for scope in told.scope_spans for span in scope.spans]


@contextmanager
def collecting() -> Iterator[Collector]:
    class Door(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            collector.take(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """A test is told by what was collected."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Door)
    collector = Collector(f"http://127.0.0.1:{server.server_port}")
    serving = Thread(target=server.serve_forever)
    serving.start()
    try:
        yield collector
    finally:
        server.shutdown()
        serving.join()
        server.server_close()
