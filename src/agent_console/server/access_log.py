"""One line for each request: enough to find it again and to see how it went, and nothing that opens anything.

The path is the route's, with the names of its fields: what stands in their place, and every query, body and
credential, stays out of the log.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from starlette.types import Scope

from agent_console.domain.records import shown_time
from agent_console.server.arrival import Arrival

Write = Callable[[str], None]


@dataclass
class Sent:
    """What has left of an answer so far."""

    status: int | None = None
    """None as long as nothing has left: the client was gone before."""
    bytes: int = 0


def line_of(scope: Scope, arrival: Arrival, sent: Sent, seconds: float) -> str:
    told = {
        "time": shown_time(datetime.now(UTC)),
        "request_id": arrival.request_id,
        "method": scope["method"],
        "path": getattr(scope.get("route"), "path", None),
        "status": sent.status,
        "ms": round(seconds * 1000, 1),
        "bytes": sent.bytes,
        "address": arrival.client,
        "credential": arrival.shown,
    }
    return json.dumps(told)
