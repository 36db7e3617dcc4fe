"""The disk of the embedded PostgreSQL runs full, and is made free again: on a small file system of its own.

Only root may mount one; without that right nothing is tried, and the report says so.
"""

import asyncio
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench.faults_report import Line
from tests.support.clusters import reachable_folder

from agent_console.database.embedded import EmbeddedServer, embedded_postgres
from agent_console.database.first_team import ensure_team
from agent_console.database.migrate import migrate
from agent_console.database.roles import APP, with_role
from agent_console.domain.audit_proof import Verification
from agent_console.domain.errors import ConsoleError
from agent_console.domain.ids import JobId
from agent_console.domain.jobs import JobAsked, NewJob
from agent_console.domain.records import Nothing
from agent_console.repository.operations import JOBS_CREATE, JOBS_GET, ME
from agent_console.repository.operations.audit_trail import AUDIT_VERIFY
from agent_console.repository.postgres.audit.sealing import SEAL_ACTS
from agent_console.repository.postgres.duties.rounds import do_round
from agent_console.repository.postgres.repository import PostgresRepository, open_direct

TRIED = "the disk of the embedded database is full"
SIZE_MEGABYTES, BALLAST_MEGABYTES = 320, 64
PAYLOAD_BYTES = 200_000
MOST_JOBS = 5_000
PATIENCE = 90.0


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    mounted = ["mount", "-t", "tmpfs", "-o", f"size={SIZE_MEGABYTES}m,mode=0755", "tmpfs", str(folder)]
    subprocess.run(mounted, check=True, capture_output=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


async def fill(operator: PostgresRepository) -> tuple[list[JobId], ConsoleError | None]:
    """Until it is refused; the payload can't be made smaller by packing it."""
    made: list[JobId] = []
    for _ in range(MOST_JOBS):
        new = NewJob(type="large", payload={"bytes": os.urandom(PAYLOAD_BYTES // 2).hex()})
        try:
            made.append((await operator.call(JOBS_CREATE, new)).id)
        except ConsoleError as refused:
            return made, refused
    return made, None


async def answers_again(operator: PostgresRepository, within: float) -> bool:
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        try:
            await operator.call(ME, Nothing())
        except ConsoleError:
            await asyncio.sleep(0.2)
        else:
            return True
    return False


async def count_lost(operator: PostgresRepository, made: list[JobId]) -> int:
    lost = 0
    for job_id in made:
        try:
            await operator.call(JOBS_GET, JobAsked(job_id=job_id))
        except ConsoleError:
            lost += 1
    sealed = await do_round(SEAL_ACTS, operator.backend)
    proof = await operator.call(AUDIT_VERIFY, Verification())
    return lost + (sealed.error is not None) + (proof.damage is not None)


async def run_full(server: EmbeddedServer, ballast: Path, again: ExitStack, folder: Path) -> Line:
    async with open_direct(with_role(server.dsn(), APP)) as operator:
        made, refused = await fill(operator)
        await asyncio.to_thread(ballast.unlink)
        begun = time.monotonic()
        if not await answers_again(operator, 10.0):
            # The server itself has ended: the next program that comes starts it.
            again.enter_context(embedded_postgres(folder))
        back = await answers_again(operator, PATIENCE)
        took = time.monotonic() - begun
        after = await fill_one(operator)
        lost = await count_lost(operator, [*made, *after])
    print(f"       {TRIED}: {len(made):,} jobs acknowledged, then: {refused}", flush=True)
    return Line(TRIED, 1, lost + (refused is None) + (not back) + (not after), f"{took:.1f} s")


async def fill_one(operator: PostgresRepository) -> list[JobId]:
    return [(await operator.call(JOBS_CREATE, NewJob(type="after", payload={}))).id]


async def disk_runs_full() -> Line:
    if os.geteuid() != 0:
        return Line(f"{TRIED} (not tried: only root may mount a small one)", 0, 0, "-")
    with reachable_folder() as parent, ExitStack() as stack:
        disk = stack.enter_context(small_disk(parent))
        ballast = disk / "ballast"
        ballast.write_bytes(bytes(BALLAST_MEGABYTES * 2**20))
        folder = disk / "data"
        server = stack.enter_context(embedded_postgres(folder))
        migrate(server.dsn())
        ensure_team(server.dsn())
        again = stack.enter_context(ExitStack())
        return await run_full(server, ballast, again, folder)
