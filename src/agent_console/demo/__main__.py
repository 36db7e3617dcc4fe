"""The process of the demo's agents. It is told on its input where to work, and ends when that is closed."""

import asyncio
import json
import logging
import os
import signal
import sys
import threading
from pathlib import Path

from agent_console.demo.living import Orders, live

READY = "ready"
LEAVES_WITHIN_SECONDS = 4.0
"""Whoever started this process may have been killed, and the server with it: then nobody hears the last words."""


def main() -> None:
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(message)s")
    told = sys.stdin.buffer.readline()
    if told:
        words = json.loads(told)
        asyncio.run(_live(Orders(words["url"], words["token"], Path(words["folder"]))))


async def _live(orders: Orders) -> None:
    loop, until = asyncio.get_running_loop(), asyncio.Event()

    def leave() -> None:
        until.set()
        loop.call_later(LEAVES_WITHIN_SECONDS, os._exit, 1)

    def watch() -> None:
        while os.read(sys.stdin.fileno(), 4096):
            pass
        loop.call_soon_threadsafe(leave)

    def ready() -> None:
        sys.stdout.write(f"{READY}\n")
        sys.stdout.flush()

    loop.add_signal_handler(signal.SIGTERM, leave)
    threading.Thread(target=watch, daemon=True, name="parent-watch").start()
    await live(orders, until, ready)


if __name__ == "__main__":
    main()
