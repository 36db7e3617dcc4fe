"""A proof that is told to end, by Ctrl-C or by SIGTERM, ends everything that it started and writes nothing."""

import signal
import sys
from collections.abc import Callable

STOPPED = 130


def ends_when_told(main: Callable[[], int]) -> int:
    """Both go the way of Ctrl-C. It is ignored in what a script starts in the background, so that is asked for."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        return main()
    except KeyboardInterrupt:
        print("stopped before the end: nothing was judged, docs/ is as it was", file=sys.stderr, flush=True)
        return STOPPED
