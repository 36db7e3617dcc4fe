"""Reading a program's own code makes a great many things that stay: to look for garbage among them is in vain."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def reading_code() -> Iterator[None]:
    """Nobody looks for garbage within the block, nor ever again in what was made until its end."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
