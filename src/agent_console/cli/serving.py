"""`serve`: the HTTP server on the profile's database."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from agent_console.cli.installed import server_installed
from agent_console.cli.opening import brought_up_to_date
from agent_console.cli.output import narrate
from agent_console.config import Embedded, Settings
from agent_console.domain.errors import ConfigError

if TYPE_CHECKING:
    import ssl


@contextmanager
def database_of(settings: Settings) -> Iterator[tuple[str, str | None]]:
    """The DSNs to work with, the embedded database started when the profile has one."""
    profile = settings.profile
    if isinstance(profile.target, Embedded):
        from agent_console.database.embedded import embedded_postgres
        from agent_console.database.first_team import ensure_team

        with embedded_postgres(profile.target.data_folder, say=narrate) as server:
            database = brought_up_to_date(server, profile.target.data_folder)
            ensure_team(database.administration)
            yield database.working, None
        return
    connection = profile.connection()
    if connection is None:
        raise ConfigError(
            f"Profile {profile.name} leads to another server, not to a database.",
            hint="Choose a profile with a dsn, or say --dsn.",
        )
    listen = connection.listen_dsn
    yield connection.dsn.get_secret_value(), listen.get_secret_value() if listen else None


def run_server(settings: Settings, *, host: str, port: int, plain_http: bool, access_log: bool) -> None:
    with server_installed():
        from agent_console.server.allowed import Allowed
        from agent_console.server.event_log import events_told
        from agent_console.server.listening import entrance, serve
        from agent_console.server.log_writer import written_to

    def announce(address: str) -> None:
        print(address, flush=True)  # noqa: T201
        narrate(f"Listening on {address}; its description is at {address}/docs. Ctrl-C stops it.")

    tls = _tls_of(settings)
    with (
        entrance(host, port, plain_http=plain_http, tls=tls) as listening,
        database_of(settings) as (dsn, listen_dsn),
        written_to(sys.stderr.fileno()) as write,
        events_told(write),
    ):
        serve(
            dsn,
            listen_dsn=listen_dsn,
            listening=listening,
            trusted_proxies=settings.trusted_proxies,
            announce=announce,
            tls=tls,
            allowed=Allowed(settings.requests_per_minute, settings.address_requests_per_minute),
            access_log=write if access_log else None,
        )


def _tls_of(settings: Settings) -> "ssl.SSLContext | None":
    certificate, key = settings.tls_cert, settings.tls_key
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        there, missing = ("key", "cert") if certificate is None else ("cert", "key")
        raise ConfigError(
            f"TLS has a tls_{there} but no tls_{missing}.", hint=f"Give --tls-{missing} too, or neither."
        )
    from agent_console.server.tls import tls_context

    return tls_context(certificate, key)
