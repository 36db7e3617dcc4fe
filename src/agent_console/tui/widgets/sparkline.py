"""Small graphs of letters with a true scale: from nothing at the bottom to a top that is written beside them."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from agent_console.tui.history import Stretch

LEVELS = "▁▂▃▄▅▆▇█"
UNKNOWN = "·"
FULL, HALF, EMPTY = "━", "╸", "┈"


def bucketed(stretches: Sequence[Stretch], now: datetime, span: timedelta, cells: int) -> tuple[float | None, ...]:
    """The mean of what is known in each of so many equal parts of the span up to now; None where nothing is."""
    width = span / cells
    begin = now - span
    return tuple(_mean(stretches, begin + width * cell, begin + width * (cell + 1)) for cell in range(cells))


def _mean(stretches: Sequence[Stretch], begins: datetime, ends: datetime) -> float | None:
    weighed = known = 0.0
    for stretch in stretches:
        seconds = (min(ends, stretch.ends) - max(begins, stretch.begins)).total_seconds()
        if seconds > 0:
            weighed += stretch.value * seconds
            known += seconds
    return weighed / known if known else None


def sparkline(values: Sequence[float | None], top: float) -> str:
    """One letter for each value. The top is as high as a line; nothing at all is the lowest letter."""
    return "".join(UNKNOWN if value is None else _level(value, top) for value in values)


def _level(value: float, top: float) -> str:
    if top <= 0 or value <= 0:
        return LEVELS[0]
    # Whatever is more than nothing looks like more than nothing.
    return LEVELS[max(1, min(len(LEVELS) - 1, round(value / top * (len(LEVELS) - 1))))]


def bar(value: float, whole: float, cells: int) -> str:
    """A part of a whole, to half a letter; whatever is more than nothing can be seen."""
    if whole <= 0 or value <= 0:
        return EMPTY * cells
    halves = max(1, min(cells * 2, round(value / whole * cells * 2)))
    drawn = FULL * (halves // 2) + HALF * (halves % 2)
    return drawn + EMPTY * (cells - len(drawn))
