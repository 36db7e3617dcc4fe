"""The jobs of the example fleet: some of every state, with what an operator would find in each."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class ExampleJob:
    """`age` and `due_in` are seconds from the fleet's own time."""

    type: str
    status: str
    age: float
    payload: Mapping[str, object] = field(default_factory=dict)
    tool: str | None = None
    needs: tuple[str, ...] = ()
    agent: str | None = None
    bound_to: str | None = None
    priority: int = 0
    attempt: int = 1
    progress: Mapping[str, object] | None = None
    due_in: float | None = None
    error: str | None = None
    summary: str | None = None
    cancelling: bool = False


def _scan(percentage: int, of: int) -> Mapping[str, object]:
    return {
        "stage": "scanning",
        "percentage": percentage,
        "files_scanned": of * percentage // 100,
        "total_files": of,
    }


_WAITING = (
    ExampleJob("report", "queued", 41, {"month": "2026-10"}, "report", ("tool:report",), priority=5),
    ExampleJob("report", "queued", 63, {"month": "2026-09"}, "report", ("tool:report",)),
    ExampleJob("crawl", "queued", 95, {"site": "https://example.com"}, "crawler", ("tool:crawler",)),
    ExampleJob("crawl", "queued", 240, {"site": "https://example.org"}, "crawler", ("tool:crawler",), attempt=2),
    ExampleJob("photostats", "queued", 610, {"path": "/vol/2019"}, "photostats", bound_to="atlas"),
    ExampleJob("transcribe", "queued", 3900, {"audio": "call-88.ogg"}, "whisper", ("tool:whisper",)),
    ExampleJob("photostats", "scheduled", 7300, {"path": "/vol"}, "photostats", bound_to="atlas", due_in=5400),
    ExampleJob("report", "scheduled", 8000, {"month": "2026-11"}, "report", ("tool:report",), due_in=86400),
)
_HELD = (
    ExampleJob(
        "photostats", "running", 180, {"path": "/vol/2021"}, "photostats", agent="atlas",
        bound_to="atlas", progress=_scan(45, 2741),
    ),
    ExampleJob(
        "report", "running", 75, {"month": "2026-08"}, "report", ("tool:report",), "cartographer",
        progress={"stage": "writing", "percentage": 80},
    ),
    ExampleJob(
        "summary", "running", 52, {"thread": "launch plan"}, "summary", ("tool:summary",), "cartographer",
        progress={"stage": "reading", "percentage": 12},
    ),
    ExampleJob(
        "codex_exec", "running", 1260, {"task": "upgrade the linter"}, "codex", ("tool:codex",), "ember",
        priority=10, progress={"stage": "testing", "percentage": 64},
    ),
    ExampleJob(
        "codex_exec", "running", 400, {"task": "port the tests"}, "codex", ("tool:codex",), "ember",
        progress={"stage": "editing", "percentage": 30}, cancelling=True,
    ),
    ExampleJob("triage", "assigned", 3, {"ticket": 4711}, "triage", ("tool:triage",), "dispatch"),
)  # fmt: skip
_ENDED = (
    ExampleJob(
        "deploy", "dead_letter", 2700, {"service": "billing"}, "deploy", ("tool:deploy",), "gantry",
        attempt=3, error="lease expired: gantry did not renew it for 120 s",
    ),
    ExampleJob(
        "crawl", "failed", 3300, {"site": "https://example.net"}, "crawler", ("tool:crawler",), "beacon",
        error="robots.txt forbids this path",
    ),
    ExampleJob("report", "cancelled", 5000, {"month": "2026-07"}, "report", ("tool:report",)),
    *(
        ExampleJob(
            kind, "succeeded", 3600 + step * 310, {"part": step}, kind, (f"tool:{kind}",), agent,
            summary=summary,
        )
        for step, (kind, agent, summary) in enumerate(
            (
                ("triage", "dispatch", "routed to billing"),
                ("summary", "cartographer", "12 messages, 3 decisions"),
                ("crawler", "beacon", "318 pages"),
                ("triage", "dispatch", "duplicate of 4690"),
                ("codex", "ember", "2 files changed, all tests pass"),
                ("report", "cartographer", "14 pages"),
                ("photostats", "atlas", "2,741 files, 38 without a date"),
                ("triage", "dispatch", "answered from the handbook"),
            )
        )
    ),
)  # fmt: skip

EXAMPLE_JOBS = _WAITING + _HELD + _ENDED
