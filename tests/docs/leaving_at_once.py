"""The program, in a process that ends with the command: taking a warm interpreter down costs as much again."""

import os
import sys

from agent_console.__main__ import main

if __name__ == "__main__":
    code = 0
    try:
        main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
