"""The command line: what can be said, and where each word goes."""

from typing import TYPE_CHECKING, Annotated

import typer

from agent_console import __version__
from agent_console.cli.ending import exiting, leave_on_signals, wait_for
from agent_console.cli.examples import epilog
from agent_console.cli.output import OUTPUT, WHOLE_OUTPUT, OutputForm, TableColumn, emit, narrate, whisper
from agent_console.cli.reading_code import reading_code

if TYPE_CHECKING:
    from agent_console.config import Settings

BEGINNING = """\b
To begin:
  agent-console demo      a living example fleet, in a database of its own
  agent-console serve     a server for consoles and agents, here or on your PostgreSQL
  agent-console doctor    what is wrong here, and what to do about it

Options also stand in the configuration file, or in the environment as AGENT_CONSOLE_DSN and the like;
`agent-console config show` tells what counts. Data goes to standard output, everything else to standard error.
Exit codes: 0 done, 1 refused or not found, 2 misused, 3 nobody answers, 130 interrupted."""

app = typer.Typer(
    name="agent-console",
    help="The operator's console for fleets of agents. Without a command it opens the console.",
    no_args_is_help=False,
    add_completion=True,
    epilog=BEGINNING,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
database_app = typer.Typer(help="The database's schema, and its teams.", no_args_is_help=True)
config_app = typer.Typer(help="What is set, and by whom.", no_args_is_help=True)
app.add_typer(database_app, name="db")
app.add_typer(config_app, name="config")


FORM = Annotated[OutputForm, OUTPUT]


class _Given:
    """What the root options said, for whichever command follows."""

    options: dict[str, object] = {}  # noqa: RUF012


def load() -> "Settings":
    from agent_console.config import load as load_settings

    return load_settings(_Given.options)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"agent-console {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    profile: Annotated[
        str | None,
        typer.Option("--profile", "-p", help="Which profile of the configuration file to use.", metavar="NAME"),
    ] = None,
    config: Annotated[str | None, typer.Option(help="Another configuration file.", metavar="FILE")] = None,
    dsn: Annotated[
        str | None,
        typer.Option(help="Go straight to this PostgreSQL: postgresql://user@host/database.", metavar="DSN"),
    ] = None,
    url: Annotated[
        str | None, typer.Option(help="Go through this agent-console server: https://host.", metavar="URL")
    ] = None,
    team: Annotated[
        str | None, typer.Option(help="The team to work in, by its short name.", metavar="TEAM")
    ] = None,
    user: Annotated[
        str | None,
        typer.Option(help="Who acts, by e-mail or usr_ id; through a server its token says it.", metavar="USER"),
    ] = None,
    read_only: Annotated[bool | None, typer.Option("--read-only", help="Nothing can be changed.")] = None,
    theme: Annotated[
        str | None, typer.Option(help="Colours of the console: dark, light, ansi or mono.", metavar="THEME")
    ] = None,
    slow: Annotated[
        bool | None, typer.Option("--slow", help="For slow lines: ten frames a second at most, nothing moves.")
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    _Given.options = {
        "profile": profile,
        "config": config,
        "dsn": dsn,
        "url": url,
        "team": team,
        "user": user,
        "read_only": read_only,
        "theme": theme,
        "slow": slow,
    }
    if context.invoked_subcommand is None:
        console()


@app.command()
@exiting
def console() -> int:
    """Open the console (the same as no command at all)."""
    from agent_console.cli.console import console as opened_console

    return opened_console(_Given.options)


@app.command()
@exiting
def demo() -> int:
    """Open the console on an example fleet. It has a database of its own, needs nothing, changes nothing else."""
    from agent_console.cli.console import demo as opened_demo

    return opened_demo(_Given.options)


@app.command()
@exiting
def status() -> None:
    """The pool and the queue as plain text."""
    from agent_console.cli.opening import opened
    from agent_console.cli.status import print_status

    settings = load()

    async def ask() -> None:
        async with opened(settings.profile, whisper) as repository:
            await print_status(repository)

    wait_for(ask())


@app.command(epilog=epilog("doctor"))
@exiting
def doctor(
    output: Annotated[OutputForm, WHOLE_OUTPUT] = OutputForm.TABLE,
) -> int:
    """What is wrong here, and what to do about it. Exit code 1 when something is.

    Everything is looked at, from the terminal to the data, also when nobody answers.
    """
    from agent_console.cli.doctor import print_examination

    return print_examination(_Given.options, output)


@app.command()
@exiting
def keys(
    output: FORM = OutputForm.TABLE,
) -> int:
    """Every key of the console by its id, for the keymap. Exit code 1 when the keymap has a mistake in it."""
    from agent_console.cli.keys import print_keys

    return print_keys(load(), output)


@app.command(epilog=epilog("serve"))
@exiting
def serve(
    host: Annotated[str, typer.Option(help="The address to listen on.", metavar="ADDRESS")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.", metavar="N")] = 7373,
    plain_http: Annotated[
        bool, typer.Option("--plain-http", help="Listen beyond this machine without TLS.")
    ] = False,
    tls_cert: Annotated[
        str | None, typer.Option(help="TLS with this certificate and its chain, in PEM.", metavar="FILE")
    ] = None,
    tls_key: Annotated[str | None, typer.Option(help="The certificate's private key.", metavar="FILE")] = None,
    access_log: Annotated[
        bool,
        typer.Option(
            "--access-log/--no-access-log",
            help="A line of JSON on standard error for each request; on unless said.",
            show_default=False,
        ),
    ] = True,
) -> None:
    """Serve the HTTP API for consoles and agents. Its address is printed when it can be used."""
    from agent_console.cli.serving import run_server

    _Given.options |= {"tls_cert": tls_cert, "tls_key": tls_key}
    run_server(load(), host=host, port=port, plain_http=plain_http, access_log=access_log)


@database_app.command("migrate", epilog=epilog("db migrate"))
@exiting
def db_migrate(
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Change nothing; tell what would run, and which programs it stops.")
    ] = False,
) -> None:
    """Bring the database to this program's schema. Safe to run again, and while servers run."""
    from agent_console.cli.schema import migrate_database

    migrate_database(load(), dry_run=dry_run)


@database_app.command("distribute")
@exiting
def db_distribute() -> None:
    """Spread the teams over the nodes of a Citus cluster. Run on its coordinator; safe to run again."""
    from agent_console.cli.schema import distribute_database

    distribute_database(load())


@database_app.command("status")
@exiting
def db_status(
    output: FORM = OutputForm.TABLE,
) -> int:
    """Where the database's schema stands. Exit code 0 when it serves this program, 1 when it does not."""
    from agent_console.cli.schema import print_schema_status

    return print_schema_status(load(), output)


@database_app.command("add-team", epilog=epilog("db add-team"))
@exiting
def db_add_team(
    slug: Annotated[str, typer.Argument(help="Its short name: a-z, 0-9 and -.", metavar="TEAM")],
    admin: Annotated[str, typer.Option(help="The e-mail address of its first administrator.", metavar="EMAIL")],
    name: Annotated[
        str | None, typer.Option(help="What it is called; the short name if left out.", metavar="NAME")
    ] = None,
    full_name: Annotated[
        str | None,
        typer.Option(help="What the administrator is called; the e-mail address if left out.", metavar="NAME"),
    ] = None,
) -> None:
    """Make a team and its first administrator. That person adds everybody else. Needs the rights to migrate."""
    from agent_console.cli.schema import administration
    from agent_console.database.first_team import add_team

    with administration(load()) as dsn:
        add_team(dsn, slug, name or slug, admin, full_name or admin)
    narrate(f'Team {slug} is there. Set `team = "{slug}"` and `user = "{admin}"` in your profile.')


@config_app.command("show")
@exiting
def config_show(
    output: FORM = OutputForm.TABLE,
) -> None:
    """Every setting, and where it came from. Secrets are not shown."""
    from agent_console.config import show

    values = [{"id": item.name, "value": item.value, "origin": str(item.origin)} for item in show(load())]
    columns: list[TableColumn[dict[str, str]]] = [
        TableColumn("setting", lambda row: row["id"]),
        TableColumn("value", lambda row: row["value"]),
        TableColumn("from", lambda row: row["origin"]),
    ]
    emit(values, columns, output)


def _own_words() -> set[str]:
    commands = {str(one.name or one.callback.__name__) for one in app.registered_commands if one.callback}
    return commands | {str(group.name) for group in app.registered_groups}


def run(arguments: list[str]) -> int:
    """Run one command line to its exit code."""
    from agent_console.cli.agent_commands import add_agent

    leave_on_signals()
    add_agent(app, load)
    # Most of a start is reading what the operations are made of; a command of our own needs none of it.
    if not arguments or arguments[0] not in _own_words():
        with reading_code():
            from agent_console.cli.derived import add_nouns

            add_nouns(app, load, *arguments)
    try:
        app(args=arguments, prog_name="agent-console", standalone_mode=True)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    return 0
