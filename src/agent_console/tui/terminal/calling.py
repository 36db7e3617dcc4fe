"""Calls the operator to the terminal: its bell, and the title of its window. Only our own words go there."""

import os
from typing import Any

from textual.app import App

BELL = "\a"
# The title that was there is put on the terminal's own stack, and taken from it again.
KEEP, TAKE_BACK = "\x1b[22;2t", "\x1b[23;2t"
# These print what they do not know, or do something else with it.
WITHOUT_A_TITLE = ("", "dumb", "linux", "unknown")


class _Kept:
    """True from the first title of ours until the one before it is back."""

    now = False


def ring(app: App[Any]) -> None:
    _write(app, BELL)


def set_title(app: App[Any], words: str) -> None:
    """Letters, digits and signs; whatever could end the sequence, or begin another, is left out."""
    if os.environ.get("TERM", "") in WITHOUT_A_TITLE:
        return
    shown = "".join(letter for letter in words if letter.isascii() and letter.isprintable())
    keep = "" if _Kept.now else KEEP
    _Kept.now = True
    _write(app, f"{keep}\x1b]2;{shown}\x1b\\")


def has_title() -> bool:
    """Whether the title is one of ours."""
    return _Kept.now


def restore_title(app: App[Any]) -> None:
    if back := taken_back():
        _write(app, back)


def taken_back() -> str:
    """What gives the terminal its own title back; nothing when it has it."""
    was_kept, _Kept.now = _Kept.now, False
    return TAKE_BACK if was_kept else ""


def _write(app: App[Any], data: str) -> None:
    driver = app._driver
    if driver is not None:
        driver.write(data)
