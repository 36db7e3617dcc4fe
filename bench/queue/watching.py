"""Three consoles that watch a team: what each of them asks once a second, until its input closes."""

import asyncio
import sys

from bench.queue.ours import TEAM

from agent_console.domain.jobs import JobQuery
from agent_console.domain.records import Nothing
from agent_console.repository.operations import JOBS_LIST, POOL_STATUS, QUEUE_DEPTH
from agent_console.repository.postgres.identify import by_name
from agent_console.repository.postgres.repository import Backend, PostgresRepository

CONSOLES = 3
EVERY_SECONDS = 1.0
READY = "watching"


async def look(repository: PostgresRepository) -> None:
    await repository.call(POOL_STATUS, Nothing())
    await repository.call(QUEUE_DEPTH, Nothing())
    await repository.call(JOBS_LIST, JobQuery())


async def watch(repository: PostgresRepository) -> None:
    while True:
        await look(repository)
        await asyncio.sleep(EVERY_SECONDS)


async def main(dsn: str) -> None:
    backends = [Backend(dsn) for _ in range(CONSOLES)]
    repositories = [PostgresRepository(backend, by_name(TEAM, None)) for backend in backends]
    await asyncio.gather(*(look(repository) for repository in repositories))
    print(READY, flush=True)
    closed = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
    watching = [asyncio.create_task(watch(repository)) for repository in repositories]
    await asyncio.wait([closed, *watching], return_when=asyncio.FIRST_COMPLETED)
    for task in watching:
        if task.done():
            task.result()
        task.cancel()
    await asyncio.gather(*watching, return_exceptions=True)
    for backend in backends:
        await backend.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
