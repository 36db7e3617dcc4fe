"""The process of the demo's server, with the database below it.

PostgreSQL starts while this process reads its own code, which takes a server most of its start. What it has to say
it says on its output, a line of JSON each; it is asked on its input, and ends when that is closed.
"""

import json
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from agent_console.cli.ending import leave_on_signals
from agent_console.cli.installed import server_installed
from agent_console.cli.reading_code import reading_code
from agent_console.domain.errors import ConsoleError, JSONValue

if TYPE_CHECKING:
    from agent_console.cli.opening import LocalDatabase
    from agent_console.database.embedded import EmbeddedServer

TOKEN_FILE = "demo.token"
ATTENTIVE_SECONDS = 0.0005
SAYS, SERVING, REFUSED, REMEMBERED = "says", "serving", "refused", "remembered"
"""What a line is about."""
REMEMBER = "remember"
"""What it can be asked for: to write down what the agents did before anybody looked."""


@dataclass(frozen=True)
class Ground:
    """A database with a team in it, and the token of its administrator."""

    database: "LocalDatabase"
    token: str


def main() -> None:
    leave_on_signals()
    try:
        _serve(Path(sys.argv[1]))
    except ConsoleError as error:
        _tell(REFUSED, error.body())
        sys.exit(error.exit_code)


def _serve(folder: Path) -> None:
    is_new = not folder.exists()
    with ExitStack() as leaving, ThreadPoolExecutor(1) as beside:
        with reading_code(), _attentive():
            from agent_console.database.embedded import embedded_postgres

            starting = beside.submit(_prepared, embedded_postgres(folder, say=_say), folder, leaving)
            with server_installed():
                from agent_console.server.listening import listening_socket, serve
                from agent_console.server.routes import operation_routes
            operation_routes()
            if is_new:
                import_module("agent_console.database.migrate")
            ground = starting.result()
        serve(
            ground.database.working,
            listen_dsn=None,
            listening=listening_socket("127.0.0.1", 0),
            announce=lambda url: _tell(SERVING, {"url": url, "token": ground.token}),
            stopped_by=lambda stop: _do_as_asked(ground, stop),
        )


@contextmanager
def _attentive() -> Iterator[None]:
    """Whoever reads code holds the interpreter; who starts a database needs it often, and for a moment only."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(ATTENTIVE_SECONDS)
    try:
        yield
    finally:
        sys.setswitchinterval(usual)


def _prepared(running: "AbstractContextManager[EmbeddedServer]", folder: Path, leaving: ExitStack) -> Ground:
    server = leaving.enter_context(running)
    _say("Bringing the database up to date …")
    from agent_console.cli.opening import brought_up_to_date
    from agent_console.database.demo_history import ensure_demo_team
    from agent_console.database.operator_token import demo_token

    database = brought_up_to_date(server, folder)
    ensure_demo_team(database.administration)
    token = demo_token(database.administration, folder / TOKEN_FILE)
    _say("Starting the server …")
    return Ground(database, token)


def _do_as_asked(ground: Ground, stop: Callable[[], None]) -> None:
    """Until whoever started us is gone, however it went: its end of the pipe closes then."""

    def hear() -> None:
        for order in sys.stdin:
            if order.strip() == REMEMBER:
                _remember(ground)
        stop()

    threading.Thread(target=hear, daemon=True, name="parent-watch").start()


def _remember(ground: Ground) -> None:
    from agent_console.database.demo_history import remember

    # A demo without a past is still a demo; whatever is wrong with the database the console tells.
    with suppress(ConsoleError):
        remember(ground.database.administration, datetime.now(UTC))
    _tell(REMEMBERED, None)


def _say(sentence: str) -> None:
    _tell(SAYS, sentence)


def _tell(what: str, said: JSONValue) -> None:
    """Whoever no longer hears it has left, and that is noticed on the input."""
    with suppress(BrokenPipeError):
        sys.stdout.write(json.dumps({what: said}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
