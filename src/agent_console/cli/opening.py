"""Open the repository a profile points at. Whatever it needs is imported only then.

This is the one place that knows both implementations; the console is handed what it returns and knows only
the port.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from agent_console.config import Direct, Embedded, Profile, Remote, Settings
from agent_console.domain.errors import ConfigError, Invalid

if TYPE_CHECKING:
    from agent_console.database.embedded import EmbeddedServer
    from agent_console.repository.port import Repository

Say = Callable[[str], None]
Load = Callable[[], Settings]
"""What a command is given: settings that are read when it is run, not before."""

KEY_FILE_VARIABLE = "AGENT_CONSOLE_SERVER_KEY_FILE"
_own_key_files: set[str] = set()


@dataclass(frozen=True)
class LocalDatabase:
    """An embedded database that is up and migrated."""

    administration: str
    """For migrating: the cluster's own superuser."""
    working: str
    """For everything else: a session with no more rights than the app role has."""


def brought_up_to_date(server: "EmbeddedServer", folder: Path) -> LocalDatabase:
    """What every database of ours needs before anybody works on it."""
    from agent_console.database.roles import APP, with_role
    from agent_console.database.up_to_date import bring_up_to_date
    from agent_console.repository.postgres.registry.credentials_at_rest import ensure_key_file

    administration = server.dsn()
    bring_up_to_date(administration)
    # Credentials of connectors are sealed with a key that lives beside the database, never in it.
    use_key_file(str(ensure_key_file(folder / "server.key")))
    return LocalDatabase(administration, with_role(administration, APP))


def refuse_read_only(settings: Settings) -> None:
    """Before a change is asked for; whoever wonders why is told who said so."""
    if settings.profile.read_only:
        raise Invalid(
            f"Nothing can be changed: it is read-only, says {settings.origin['read_only']}.",
            hint="Leave that out, or choose another profile with --profile.",
        )


async def imported(*modules: str) -> None:
    """Import off the event loop, so that a console that is already painted stays alive meanwhile."""
    for module in modules:
        await asyncio.to_thread(import_module, module)


@asynccontextmanager
async def opened(profile: Profile, say: Say, *, with_duties: bool = False) -> AsyncIterator["Repository"]:
    """The profile's repository, with everything behind it started and, at the end, stopped again.

    Whoever stays for long in a direct session does the duties meanwhile: there may be no server to do them.
    """
    async with AsyncExitStack() as stack:
        match profile.target:
            case Remote() as target:
                yield await stack.enter_async_context(await _remote(profile, target))
            case Embedded(folder):
                database = await stack.enter_async_context(local_database(folder, say))
                await _first_team(database)
                yield await stack.enter_async_context(direct(database.working, None, profile, with_duties))
            case Direct() as target:
                connection = profile.connected(target)
                listen = connection.listen_dsn
                listen_dsn = listen.get_secret_value() if listen else None
                dsn = connection.dsn.get_secret_value()
                yield await stack.enter_async_context(direct(dsn, listen_dsn, profile, with_duties))


@asynccontextmanager
async def direct(
    dsn: str, listen_dsn: str | None, profile: Profile, with_duties: bool
) -> AsyncIterator["Repository"]:
    await imported("sqlalchemy.ext.asyncio", "agent_console.repository.postgres.duties.rounds")
    from agent_console.repository.postgres.duties.rounds import duties_done
    from agent_console.repository.postgres.repository import open_direct

    async with AsyncExitStack() as stack:
        opened_for = open_direct(dsn, listen_dsn=listen_dsn, team=profile.team, user=profile.user)
        repository = await stack.enter_async_context(opened_for)
        if with_duties and not profile.read_only:
            await stack.enter_async_context(duties_done(repository.backend))
        yield repository


async def _remote(profile: Profile, target: Remote) -> "Repository":
    token = profile.token()
    if token is None:
        raise ConfigError(
            f"Profile {profile.name} has no token for {target.url}.",
            hint="Set token_file, token_env or token_keyring in the profile, or AGENT_CONSOLE_TOKEN.",
        )
    return await remote(target.url, token.get_secret_value(), target.ca_file, read_only=profile.read_only)


async def remote(url: str, token: str, ca_file: Path | None = None, *, read_only: bool = False) -> "Repository":
    await imported("agent_console.repository.http.repository")
    from agent_console.repository.http.repository import HttpRepository

    return HttpRepository(url, token, ca_file=ca_file, read_only=read_only)


async def _entered(holding: "AbstractContextManager[EmbeddedServer]") -> "EmbeddedServer":
    """Start it off the event loop. Whoever leaves meanwhile waits until it can be stopped again: a thread
    can't be called back, and nobody else would ever stop what it starts."""
    starting = asyncio.ensure_future(asyncio.to_thread(holding.__enter__))
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        await asyncio.wait({starting})
        if starting.exception() is None:
            await asyncio.to_thread(holding.__exit__, None, None, None)
        raise


@asynccontextmanager
async def local_database(folder: Path, say: Say) -> AsyncIterator[LocalDatabase]:
    """The embedded PostgreSQL in this folder, migrated."""
    await imported("agent_console.database.embedded", "agent_console.database.up_to_date")
    from agent_console.database.embedded import embedded_postgres

    say("Starting PostgreSQL …")
    holding = embedded_postgres(folder, say=say)
    server: EmbeddedServer = await _entered(holding)
    try:
        say("Bringing the database up to date …")
        yield await asyncio.to_thread(brought_up_to_date, server, folder)
    finally:
        say("Stopping …")
        await asyncio.to_thread(holding.__exit__, None, None, None)


def use_key_file(path: str) -> None:
    """Whose database is open says which key. What the user has set stays; what another database set does not."""
    if os.environ.get(KEY_FILE_VARIABLE, "") in ("", *_own_key_files):
        os.environ[KEY_FILE_VARIABLE] = path
        _own_key_files.add(path)


async def _first_team(database: LocalDatabase) -> None:
    from agent_console.database.first_team import ensure_team

    await asyncio.to_thread(ensure_team, database.administration)
