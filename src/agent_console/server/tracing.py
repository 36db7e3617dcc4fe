"""A span for every request, named by its operation; one that is about a run belongs to the run's trace."""

from time import time_ns

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent_console.domain.approvals import ApprovalListed
from agent_console.domain.delegation import Delegation
from agent_console.domain.runs import Run
from agent_console.server.arrival import arrival_of
from agent_console.tracing import Traces, Work, traceparent

ANSWER = "agent_console.answer"
"""Where a route leaves what it answered, for who comes after it."""
BROKEN = 500


class Tracing:
    """What has no operation, such as looks at its health, has no span."""

    def __init__(self, app: ASGIApp, traces: Traces) -> None:
        self.app = app
        self.traces = traces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status = time_ns(), 0

        async def seen(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, seen)
        finally:
            if (name := operation_name(scope)) is not None:
                self.traces.tell(_work(scope, name, began, status), by_server=True)


def operation_name(scope: Scope) -> str | None:
    """As it was declared, whichever way the request went; None for what is no operation."""
    route = scope.get("route")
    name = getattr(getattr(route, "operation", route), "name", None)
    return name if isinstance(name, str) and "." in name else None


def _work(scope: Scope, name: str, began: int, status: int) -> Work:
    facts: dict[str, str | int] = {
        "http.request.method": scope["method"],
        "http.route": str(getattr(scope["route"], "path", "")),
        "agent_console.request_id": arrival_of(scope).request_id,
    }
    if status:
        facts["http.response.status_code"] = status
    failure = None if 0 < status < BROKEN else f"status {status}" if status else "the client left"
    return Work(name, began, run_of(scope.get(ANSWER)) or _sent(scope), facts, failure)


def run_of(answer: object) -> str | None:
    """The trace context of the run that an answer tells of."""
    match answer:
        case Delegation(run=Run() as run):
            return run_of(run)
        case Run(trace_id=trace_id, id=run_id) if trace_id is not None:
            return traceparent(trace_id, run_id)
        case ApprovalListed():
            return traceparent(answer.trace_id, answer.run_id or answer.parent_run_id or answer.id)
        case _:
            return None


def _sent(scope: Scope) -> str | None:
    """What the client says that its request belongs to."""
    found: str | None = next(
        (value.decode("latin-1") for name, value in scope["headers"] if name == b"traceparent"), None
    )
    return found
