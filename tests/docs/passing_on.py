"""What stands as `agent-console` on the PATH while documents are run: hands everything to a warm Python.

It is started for every command, so it imports next to nothing, and nothing of ours.
"""

import os
import signal
import socket
import struct
import sys
from pathlib import Path


def main() -> None:
    asking = socket.socket(socket.AF_UNIX)
    asking.connect(os.environ["AGENT_CONSOLE_DOOR"])
    variables = [f"{name}={value}" for name, value in os.environ.items() if name != "AGENT_CONSOLE_DOOR"]
    told = "\0".join([str(len(sys.argv) - 1), str(Path.cwd()), *sys.argv[1:], *variables]).encode()
    socket.send_fds(asking, [struct.pack("!I", len(told))], [0, 1, 2])
    asking.sendall(told)
    answers = asking.makefile()
    pid = int(answers.readline())
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda heard, _: os.kill(pid, heard))
    code = int(answers.readline())
    sys.exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    main()
