"""Who the caller is, and what it is connected to."""

from sqlalchemy import text

from agent_console import __version__
from agent_console.domain.identity import Myself
from agent_console.domain.records import Nothing
from agent_console.repository.operations import ME
from agent_console.repository.postgres.queue.paused import pause_of
from agent_console.repository.postgres.work import Work, answers

SERVER_VERSION = text("show server_version")


@answers(ME)
async def show_me(work: Work, request: Nothing) -> Myself:
    version = (await work.connection.execute(SERVER_VERSION)).scalar_one()
    return Myself(
        **work.caller.model_dump(),
        program_version=__version__,
        database_version=f"PostgreSQL {version}",
        pause=await pause_of(work),
    )
