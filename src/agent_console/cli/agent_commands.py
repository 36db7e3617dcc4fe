"""`agent register` and `agent run`: be an agent, with any program in any language."""

import logging
import platform
import shutil
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent_console.cli.ending import INTERRUPTED, exiting, wait_for
from agent_console.cli.examples import epilog
from agent_console.cli.output import narrate

if TYPE_CHECKING:
    from agent_console.cli.opening import Load
    from agent_console.config import Remote
    from agent_console.domain.registration import AgentRegistration

URL = Annotated[
    str | None,
    typer.Option(
        "--url", help="The server; without it, the one of the profile.", show_default=False, metavar="URL"
    ),
]
KEY_FILE = Annotated[
    Path | None,
    typer.Option(
        "--key-file",
        envvar="AGENT_CONSOLE_KEY_FILE",
        help="Where the agent's key is kept; agent.key in the configuration folder if left out.",
        show_default=False,
        metavar="FILE",
    ),
]
CAPABILITY = Annotated[
    list[str] | None,
    typer.Option(
        "--capability", help="What the agent can do; repeat for several.", show_default=False, metavar="NAME"
    ),
]


def add_agent(app: typer.Typer, load: "Load") -> None:
    group = typer.Typer(help="Be an agent, with a program in any language.", no_args_is_help=True)
    app.add_typer(group, name="agent")
    group.command("register", epilog=epilog("agent register"))(register_command(load))
    # Everything from the first word of the command on is the command's own, with or without --.
    as_given = {"allow_interspersed_args": False}
    group.command("run", context_settings=as_given, epilog=epilog("agent run"))(run_command(load))


def register_command(load: "Load") -> Callable[..., None]:
    @exiting
    def register(
        name: Annotated[str, typer.Option(help="The agent's name, unique in the team.", metavar="NAME")],
        token: Annotated[
            str,
            typer.Option(
                envvar="AGENT_CONSOLE_REGISTRATION_TOKEN",
                help="The registration token, art_key_…; - reads it from standard input.",
                show_envvar=True,
                metavar="TOKEN",
            ),
        ],
        url: URL = None,
        capability: CAPABILITY = None,
        key_file: KEY_FILE = None,
        show_key: Annotated[bool, typer.Option("--show-key", help="Print the key too; it is a secret.")] = False,
    ) -> None:
        """Come in as a new agent. Uses up a registration token, and keeps the key in a file of mode 0600."""
        from agent_console.agent.keys import KeyFile
        from agent_console.agent.pace import Pace
        from agent_console.agent.registering import register as come_in
        from agent_console.repository.http.repository import HttpRepository

        server = server_of(url, load)
        kept = KeyFile(key_path(key_file, create=True))
        kept.require_absent()
        secret = sys.stdin.readline().strip() if token == "-" else token
        wanted = _registration(secret, kept.nonce(), name, capability)

        async def ask() -> None:
            async with HttpRepository(server.url, None, ca_file=server.ca_file) as repository:
                registered = await come_in(repository, wanted, kept, pace=Pace())
            narrate(f"{registered.agent.name} is registered; its key is in {kept.path}.")
            sys.stdout.write(f"{registered.agent.id}\n")
            if show_key:
                sys.stdout.write(f"{registered.secret}\n")

        with _told():
            wait_for(ask())

    return register


def run_command(load: "Load") -> Callable[..., None]:
    @exiting
    def run_agent(
        command: Annotated[list[str], typer.Argument(help="What to start for each job.", metavar="-- COMMAND…")],
        url: URL = None,
        key_file: KEY_FILE = None,
        concurrency: Annotated[int, typer.Option(min=1, max=50, help="How many jobs at once.", metavar="N")] = 1,
        capability: CAPABILITY = None,
        job_type: Annotated[
            list[str] | None,
            typer.Option(
                "--type", help="Only jobs of this type; repeat for several.", show_default=False, metavar="TYPE"
            ),
        ] = None,
        lease: Annotated[
            int, typer.Option(min=10, max=86_400, help="Seconds a job is ours at a time.", metavar="N")
        ] = 120,
        grace: Annotated[
            float,
            typer.Option(
                min=0.0, max=3600.0, help="Seconds between TERM and KILL, and for a last job.", metavar="N"
            ),
        ] = 10.0,
        poll: Annotated[
            float, typer.Option(min=5.0, max=10.0, help="Seconds between two questions for work.", metavar="N")
        ] = 5.0,
        events: Annotated[
            bool, typer.Option("--events/--no-events", help="Whether lines of output become events of the job.")
        ] = True,
        pass_key: Annotated[
            bool, typer.Option("--pass-key", help="Give the command the agent's key, in AGENT_CONSOLE_KEY.")
        ] = False,
    ) -> int:
        """Work jobs with a program of yours, started once for each. Exit code 0 is success, 75 wants another try.

        The job's payload is its standard input, and each line of its output an event of the job.
        """
        from agent_console.agent import Agent
        from agent_console.agent.pace import Pace
        from agent_console.agent.program_watch import ProgramWatch
        from agent_console.agent.running import Command

        server = server_of(url, load)
        words = _startable(command)
        key = _key_in(key_path(key_file))
        agent = Agent(
            server.url,
            key,
            concurrency=concurrency,
            capabilities=None if capability is None else tuple(capability),
            lease_seconds=lease,
            grace=grace,
            pace=Pace.polling(poll),
            ca_file=server.ca_file,
        )
        with ProgramWatch(grace) as watch, _told():
            handler = Command(words, server.url, key if pass_key else None, tells_output=events, watch=watch)
            for known in job_type or (None,):
                agent.handle(known)(handler)
            wait_for(agent.run())
        return INTERRUPTED if agent.left_at_once else 0

    return run_agent


def server_of(given: str | None, load: "Load") -> "Remote":
    """What was said here, else where the profile leads."""
    from agent_console.config import Remote
    from agent_console.config import load as load_settings
    from agent_console.domain.errors import ConfigError

    target = (load() if given is None else load_settings({"url": given})).profile.target
    if isinstance(target, Remote):
        return target
    raise ConfigError("An agent needs a server.", hint="Say --url, or choose a profile with a url.")


def key_path(given: Path | None, *, create: bool = False) -> Path:
    from agent_console.config import config_folder

    return config_folder(create=create) / "agent.key" if given is None else given


def _key_in(path: Path) -> str:
    from agent_console.config import SecretFile
    from agent_console.config.secrets import read_secret
    from agent_console.domain.errors import ConfigError

    try:
        path.stat()
    except FileNotFoundError:
        raise ConfigError(
            f"There is no key in {path}.",
            hint="Register first: agent-console agent register --url … --token art_key_… --name …",
        ) from None
    except OSError:
        # Whoever reads it says why.
        pass
    return read_secret(SecretFile(path), "The agent's key").get_secret_value()


def _startable(command: list[str]) -> tuple[str, ...]:
    """Found before the first job is taken, not after."""
    from agent_console.domain.errors import Invalid

    if shutil.which(command[0]) is None:
        raise Invalid(f"There is no program {command[0]} that could be started.", hint="Check its name and mode.")
    return tuple(command)


def _registration(token: str, nonce: str, name: str, capability: list[str] | None) -> "AgentRegistration":
    from agent_console.cli.derived import request_of
    from agent_console.repository.operations.credentials import AGENTS_REGISTER

    facts = {
        "token": token,
        "nonce": nonce,
        "name": name,
        "capabilities": capability,
        "hostname": socket.gethostname()[:255] or None,
        "os_info": platform.platform()[:255],
    }
    request: AgentRegistration = request_of(AGENTS_REGISTER, facts)
    return request


class _Narrator(logging.Handler):
    """What the agent notes, a line each for whoever looks after it."""

    def emit(self, record: logging.LogRecord) -> None:
        from agent_console.domain.records import shown_time

        narrate(f"{shown_time(datetime.now(UTC))} {record.getMessage()}")


@contextmanager
def _told() -> Iterator[None]:
    log, handler = logging.getLogger("agent_console.agent"), _Narrator()
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(handler)
