"""The program's door: what must be instant is done here, before anything heavy is imported."""

import sys

# Options of the root command that take a value; anything else without a dash is a command.
_WITH_VALUE = ("--profile", "-p", "--config", "--dsn", "--url", "--team", "--user", "--theme")
_OPENING = ("", "demo", "console")


def opens_console(arguments: list[str]) -> bool:
    """Whether these arguments end in a console, told without the command line's own machinery."""
    command = ""
    waiting = iter(arguments)
    for argument in waiting:
        if argument in ("--help", "--version", "-h"):
            return False
        if argument in _WITH_VALUE:
            next(waiting, None)
        elif not argument.startswith("-"):
            command = command or argument
    return command in _OPENING


def main() -> None:
    arguments = sys.argv[1:]
    if arguments == ["--version"]:
        from agent_console import __version__

        sys.stdout.write(f"agent-console {__version__}\n")
        return
    if opens_console(arguments):
        from agent_console.tui.terminal.skeleton import write_skeleton

        write_skeleton("agent-console")
    from agent_console.cli.main import run

    sys.exit(run(arguments))


if __name__ == "__main__":
    main()
