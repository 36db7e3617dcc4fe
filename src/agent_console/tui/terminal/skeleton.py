"""The first frame, on the terminal before anything heavy is imported.

Only `os` and `sys` are imported up here: the interpreter has them already.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType, TracebackType

MOST_COLUMNS = 900
"""Keeps the frame below 2 KB on any terminal."""

ENTER = "\x1b[?1049h\x1b[?25l"
LEAVE = "\x1b[?1049l\x1b[?25h"

_BAR = "\x1b[1;97;100m"
_BAR_WITHOUT_COLOUR = "\x1b[7m"
_DIM = "\x1b[2m"
_PLAIN = "\x1b[m"


class _Shown:
    """True from the moment the frame is written until Textual takes the terminal over."""

    now = False


def write_skeleton(title: str) -> None:
    """Show the frame in one write, on a terminal that can. Until `hand_over`, every way out withdraws it."""
    # Textual draws on stderr: with that sent elsewhere, nothing would ever replace the frame.
    if not (os.isatty(1) and os.isatty(2)) or os.environ.get("TERM", "dumb") == "dumb":
        return
    try:
        columns, lines = os.get_terminal_size(1)
    except OSError:
        return
    bar = _BAR_WITHOUT_COLOUR if os.environ.get("NO_COLOR") else _BAR
    os.write(1, frame(title, columns or 80, lines or 24, bar).encode("utf-8", "replace"))
    _Shown.now = True
    _withdraw_on_every_way_out()


def frame(title: str, columns: int, lines: int, bar: str = _BAR) -> str:
    width = min(columns, MOST_COLUMNS)
    heading = "".join(character if character.isprintable() else "?" for character in f" {title}")[:width]
    return (
        f"{ENTER}{_PLAIN}\x1b[2J\x1b[H{bar}{heading.ljust(width)}{_PLAIN}"
        f"\x1b[3;2H{_DIM}connecting…{_PLAIN}"
        f"\x1b[{lines}H{bar}{' ' * width}{_PLAIN}\x1b[H"
    )


def hand_over() -> bool:
    """Give the terminal, on its alternate screen, to the caller. False when there is nothing to give."""
    was_shown, _Shown.now = _Shown.now, False
    return was_shown


def withdraw() -> None:
    """Bring back what the terminal showed before."""
    if not hand_over():
        return
    try:
        os.write(1, LEAVE.encode())
    except OSError:
        # The terminal has hung up: there is nobody left to show anything to.
        return


def _withdraw_on_every_way_out() -> None:
    # Imported now that the frame is out: the program needs both anyway, the first byte doesn't.
    import atexit
    import signal

    atexit.register(withdraw)
    report = sys.excepthook

    def withdraw_and_report(
        kind: type[BaseException], error: BaseException, trace: "TracebackType | None"
    ) -> None:
        withdraw()
        report(kind, error, trace)

    def withdraw_and_end(number: int, _frame: "FrameType | None") -> None:
        withdraw()
        os._exit(128 + number)

    sys.excepthook = withdraw_and_report
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, withdraw_and_end)
