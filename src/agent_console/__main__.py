"""The program's door: what must be instant is done here, before anything heavy is imported."""

import os
import sys

# The root options, told apart without the command line's own machinery: a console must be on the screen
# before that has been imported.
_WITH_VALUE = {
    "--profile": "profile",
    "-p": "profile",
    "--config": "config",
    "--dsn": "dsn",
    "--url": "url",
    "--team": "team",
    "--user": "user",
    "--theme": "theme",
}
_SWITCHES = {"--read-only": "read_only", "--slow": "slow"}
_OPENING = ("", "demo", "console")
_COMPLETING = "_AGENT_CONSOLE_COMPLETE"
"""A shell that completes a command line starts the program without arguments, and with this in its environment."""


def console_asked_for(arguments: list[str]) -> tuple[str, dict[str, object]] | None:
    """Which console these arguments open, with its options; None when they want anything else."""
    command = ""
    options: dict[str, object] = {}
    waiting = iter(arguments)
    for argument in waiting:
        name, equals, value = argument.partition("=")
        if name in _WITH_VALUE:
            given = value if equals else next(waiting, None)
            if given is None:
                return None
            options[_WITH_VALUE[name]] = given
        elif argument in _SWITCHES:
            options[_SWITCHES[argument]] = True
        elif not command and argument in _OPENING:
            command = argument
        else:
            return None
    return command, options


def main() -> None:
    arguments = sys.argv[1:]
    if arguments == ["--version"]:
        from agent_console import __version__

        sys.stdout.write(f"agent-console {__version__}\n")
        return
    # Looking for plug-ins of pydantic reads the metadata of every installed package; we have none.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    asked = None if _COMPLETING in os.environ else console_asked_for(arguments)
    if asked is None:
        from agent_console.cli.main import run

        sys.exit(run(arguments))
    from agent_console.tui.terminal.skeleton import write_skeleton

    write_skeleton("agent-console")
    from agent_console.cli.console import console, demo
    from agent_console.cli.ending import ended

    command, options = asked
    sys.exit(ended(lambda: demo(options) if command == "demo" else console(options)))


if __name__ == "__main__":
    main()
