"""What the figures were measured on."""

import os
import platform
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import psycopg
from bench.queue.plan import Plan

from agent_console.database.embedded import EmbeddedServer

SETTINGS = ("fsync", "synchronous_commit", "full_page_writes", "shared_buffers", "max_connections", "autovacuum")
PACKAGES = (
    "agent-console",
    "psycopg",
    "procrastinate",
    "pgqueuer",
    "asyncpg",
    "uvloop",
    "fastapi",
    "uvicorn",
    "httpx",
)


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")


def _memory() -> str:
    return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 1024**3:.0f} GiB"


def facts(server: EmbeddedServer, plan: Plan) -> Iterator[tuple[str, str]]:
    yield "date", f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    yield "processor", f"{os.cpu_count()} cores, {_processor()}"
    yield "memory", _memory()
    yield "load when it began", " ".join(f"{load:.1f}" for load in os.getloadavg())
    yield "system", f"{platform.system()} {platform.release()}, Python {platform.python_version()}"
    yield "packages", ", ".join(f"{package} {version(package)}" for package in PACKAGES)
    with psycopg.connect(server.dsn()) as connection:
        told = [
            str(row[0]) for name in SETTINGS for row in connection.execute("select current_setting(%s)", (name,))
        ]
    shown = ", ".join(f"{name} {value}" for name, value in zip(SETTINGS, told, strict=True))
    yield "PostgreSQL", f"{server.version}, embedded as users get it: {shown}"
    yield "slices", f"{plan.turns} of {plan.seconds:g} s each, after {plan.warm_up:g} s, in turns; medians"
