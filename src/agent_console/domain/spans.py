"""Spans of time as an operator reads them: one or two units, never more precise than useful."""

from datetime import datetime

_UNITS = ((86400, "d"), (3600, "h"), (60, "m"), (1, "s"))


def span(seconds: float) -> str:
    """`4s`, `3m`, `2h`, `5d`; small hours and days keep their next unit: `1h 20m`, `3d 4h`."""
    left = max(0, int(seconds))
    for place, (size, unit) in enumerate(_UNITS):
        count, rest = divmod(left, size)
        if not count:
            continue
        if place < 2 and count < 10:
            smaller, name = _UNITS[place + 1]
            return f"{count}{unit} {rest // smaller}{name}" if rest >= smaller else f"{count}{unit}"
        return f"{count}{unit}"
    return "0s"


def ago(moment: datetime | None, now: datetime) -> str:
    return "-" if moment is None else span((now - moment).total_seconds())


def until(moment: datetime | None, now: datetime) -> str:
    if moment is None:
        return ""
    seconds = (moment - now).total_seconds()
    return "due" if seconds <= 0 else f"in {span(seconds)}"
