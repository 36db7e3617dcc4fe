"""The demo's server: awake while the database still starts, and told on its input what to serve then."""

import json
import os
import sys

ARGUMENTS = ["serve", "--port", "0", "--with-parent"]


def main() -> None:
    # What takes a server most of its start is reading its own code.
    import agent_console.server.listening  # noqa: F401
    from agent_console.cli.main import run

    told = sys.stdin.buffer.readline()
    if told:
        os.environ |= json.loads(told)
        sys.exit(run(ARGUMENTS))


if __name__ == "__main__":
    main()
