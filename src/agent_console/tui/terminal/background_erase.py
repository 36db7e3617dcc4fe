"""Whether erased cells take the background colour of the pen: terminfo's `bce`."""

import sys

try:
    import curses
except ImportError:
    HAS_TERMINFO = False
else:
    HAS_TERMINFO = True


def erase_keeps_background(term: str) -> bool:
    """Terminfo's word on the terminal, no where it has none. One process asks about one terminal only."""
    if not HAS_TERMINFO or sys.__stdout__ is None:
        return False
    try:
        curses.setupterm(term, sys.__stdout__.fileno())
    except curses.error:
        return False
    return curses.tigetflag("bce") == 1
