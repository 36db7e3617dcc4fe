"""`serve`: the HTTP server on the profile's database."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from agent_console.cli.output import narrate
from agent_console.config import Embedded, Settings
from agent_console.domain.errors import ConfigError


@contextmanager
def database_of(settings: Settings) -> Iterator[tuple[str, str | None]]:
    """The DSNs to work with, the embedded database started when the profile has one."""
    profile = settings.profile
    if isinstance(profile.target, Embedded):
        from agent_console.database.embedded import embedded_postgres
        from agent_console.database.first_team import ensure_team
        from agent_console.database.migrate import migrate
        from agent_console.database.roles import APP, with_role
        from agent_console.repository.postgres.sealed import ensure_key_file

        with embedded_postgres(profile.target.data_folder, say=narrate) as server:
            migrate(server.dsn())
            ensure_team(server.dsn())
            key_file = ensure_key_file(profile.target.data_folder / "server.key")
            os.environ.setdefault("AGENT_CONSOLE_SERVER_KEY_FILE", str(key_file))
            yield with_role(server.dsn(), APP), None
        return
    connection = profile.connection()
    if connection is None:
        raise ConfigError(
            f"Profile {profile.name} leads to another server, not to a database.",
            hint="Choose a profile with a dsn, or say --dsn.",
        )
    listen = connection.listen_dsn
    yield connection.dsn.get_secret_value(), listen.get_secret_value() if listen else None


def run_server(settings: Settings, *, host: str, port: int, plain_http: bool, with_parent: bool) -> None:
    try:
        from agent_console.server.listening import serve
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"The server is not installed ({error.name} is missing).",
            hint="Install it with: pip install 'agent-console[server]'",
        ) from error

    def announce(address: str) -> None:
        print(address, flush=True)  # noqa: T201
        narrate(f"Listening on {address}; its description is at {address}/docs. Ctrl-C stops it.")

    with database_of(settings) as (dsn, listen_dsn):
        serve(
            dsn,
            listen_dsn=listen_dsn,
            host=host,
            port=port,
            plain_http=plain_http,
            trusted_proxies=settings.trusted_proxies,
            announce=announce,
            with_parent=with_parent,
        )
