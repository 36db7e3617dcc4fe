"""Listen on a socket, serve until told to stop, leave cleanly."""

import asyncio
import errno
import ipaddress
import signal
import socket
import ssl
from collections.abc import Callable, Sequence

import uvicorn
import uvloop
from fastapi import FastAPI

from agent_console.domain.errors import ConfigError
from agent_console.repository.postgres.repository import Backend
from agent_console.server.access_log import Write
from agent_console.server.allowed import Allowed
from agent_console.server.app import DEFAULT_ALLOWED, build_app
from agent_console.server.bounded_http import BoundedHttp
from agent_console.server.leaving import LeavingServer

# Everybody who waits has been told by then; this is for answers that take long.
LAST_ANSWERS_SECONDS = 5
# Longer than any of our callers keeps a connection that is quiet: a request that crosses its end is lost.
QUIET_SECONDS = 20
# uvloop takes one new connection from each socket whenever it looks. A busy server looks a few times a second, so
# from one socket alone it would fall behind its callers, who give up, come again and make the line longer.
TAKEN_AT_ONCE = 16


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def entrance(host: str, port: int, *, plain_http: bool, tls: ssl.SSLContext | None) -> socket.socket:
    """Where to listen, taken before anything else starts: who may not has a sentence, and nothing to undo."""
    if not is_loopback(host) and not plain_http and tls is None:
        raise ConfigError(
            f"Refusing to send credentials in the clear on {host}.",
            hint="Give --tls-cert and --tls-key, listen on 127.0.0.1 behind a TLS proxy, "
            "or say --plain-http if the network is yours.",
        )
    return listening_socket(host, port)


def listening_socket(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return _bound(family, host, port)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            message, hint = f"Port {port} on {host} is taken.", "Choose another with --port; 0 takes a free one."
        elif error.errno in (errno.EACCES, errno.EPERM):
            message, hint = f"Port {port} needs more rights than you have.", "Choose a port above 1023."
        else:
            message, hint = f"Can't listen on {host}:{port}: {error.strerror or error}.", "Check --host."
        raise ConfigError(message, hint=hint) from error


def _bound(family: socket.AddressFamily, host: str, port: int) -> socket.socket:
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(2048)
    except OSError:
        listening.close()
        raise
    return listening


def often_heard(listening: socket.socket) -> list[socket.socket]:
    """The same socket several times: so many new connections are taken whenever the server looks."""
    return [listening, *(listening.dup() for _ in range(TAKEN_AT_ONCE - 1))]


def address_of(listening: socket.socket, scheme: str = "http") -> str:
    host, port = listening.getsockname()[:2]
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def http_config(app: FastAPI, tls: ssl.SSLContext | None = None) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=BoundedHttp,
        # Otherwise whatever happens to be installed would take over connections, with no bounds.
        ws="none",
        log_level="warning",
        # Its own form of a log line would be another one than ours.
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=QUIET_SECONDS,
        timeout_graceful_shutdown=LAST_ANSWERS_SECONDS,
        ssl_context_factory=None if tls is None else lambda _config, _usual: tls,
    )


def serve(
    dsn: str,
    *,
    listen_dsn: str | None,
    listening: socket.socket,
    announce: Callable[[str], None],
    stopped_by: Callable[[Callable[[], None]], None] | None = None,
    trusted_proxies: Sequence[str] = (),
    tls: ssl.SSLContext | None = None,
    allowed: Allowed = DEFAULT_ALLOWED,
    access_log: Write | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT, or until whoever was given the way to stop does so with `stopped_by`.

    `announce` is told the address once it can be used.
    """
    app = build_app(
        Backend(dsn, listen_dsn=listen_dsn, pool_size=8),
        trusted_proxies=trusted_proxies,
        allowed=allowed,
        access_log=access_log,
    )
    server = LeavingServer(http_config(app, tls))

    def stop() -> None:
        server.should_exit = True

    if stopped_by is not None:
        stopped_by(stop)
    announce(address_of(listening, "http" if tls is None else "https"))
    # The library sends itself the signal once more when it has ended; but whoever called us still has to put away
    # what it started, such as a database.
    signal.signal(signal.SIGTERM, lambda *_: None)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(server.serve(sockets=often_heard(listening)))
