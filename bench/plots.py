"""Lines over time as an SVG of small plots, each with its own scale, from nothing but text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT, LEFT, TOP, BOTTOM, RIGHT = 460, 190, 64, 34, 36, 16
COLUMNS = 2
HEAD, LEGEND = 34, 30
# Of the kinds of marks, in the order in which they are named; told apart without red and green.
COLOURS = ("#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
STYLE = (
    "text{font:11px sans-serif;fill:#444}.title{font-weight:bold;fill:#111}.head{font-size:14px}"
    ".line{fill:none;stroke:#24292f;stroke-width:1.6}.grid{stroke:#e4e4e4}.axis{stroke:#888}"
    ".mark{stroke-dasharray:3 3;stroke-width:1.2}"
)

Mark = tuple[float, str]


@dataclass(frozen=True)
class Plot:
    """`points` are minutes and values."""

    title: str
    unit: str
    points: Sequence[tuple[float, float]]


def ticks(most: float, about: int) -> list[float]:
    """Round numbers from nothing to at least the highest, about so many."""
    raw = most / about if most > 0 else 1.0
    ten = 1.0
    while ten > raw:
        ten /= 10
    while ten * 10 <= raw:
        ten *= 10
    step = next(ten * step for step in STEPS if ten * step >= raw)
    count = 1
    while count * step < most:
        count += 1
    return [place * step for place in range(count + 1)]


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.1f}"


def _drawn(plot: Plot, marks: Sequence[Mark], colours: Mapping[str, str], x: float, y: float) -> str:
    """From nothing to the highest: a line that is flat looks flat."""
    end = max((minute for minute, _ in plot.points), default=1.0) or 1.0
    heights = ticks(max((value for _, value in plot.points), default=1.0), 3)
    wide, high = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    left, ground = x + LEFT, y + TOP + high

    def across(minute: float) -> float:
        return left + wide * minute / end

    def up(value: float) -> float:
        return ground - high * value / heights[-1]

    parts = [f'<text class="title" x="{x + 8}" y="{y + 20}">{escape(plot.title)}</text>']
    for value in heights:
        parts.append(
            f'<line class="grid" x1="{left}" x2="{left + wide}" y1="{up(value):.1f}" y2="{up(value):.1f}"/>'
        )
        words = escape(f"{_short(value)} {plot.unit}".strip())
        parts.append(f'<text x="{left - 6}" y="{up(value) + 4:.1f}" text-anchor="end">{words}</text>')
    for minute in (one for one in ticks(end, 6) if one <= end):
        words = f"{_short(minute)} min" if minute else "0"
        parts.append(f'<text x="{across(minute):.1f}" y="{ground + 16}" text-anchor="middle">{words}</text>')
    for minute, kind in marks:
        at = f'x1="{across(minute):.1f}" x2="{across(minute):.1f}"'
        parts.append(f'<line class="mark" stroke="{colours[kind]}" {at} y1="{y + TOP}" y2="{ground}"/>')
    line = " ".join(f"{across(minute):.1f},{up(value):.1f}" for minute, value in plot.points)
    axis = f'<line class="axis" x1="{left}" x2="{left + wide}" y1="{ground}" y2="{ground}"/>'
    return "\n".join((*parts, axis, f'<polyline class="line" points="{line}"/>'))


def _legend(colours: Mapping[str, str], y: float) -> str:
    parts, x = [f'<text class="title" x="8" y="{y + 16}">broken:</text>'], 70
    for kind, colour in colours.items():
        parts.append(f'<line class="mark" stroke="{colour}" x1="{x}" x2="{x + 22}" y1="{y + 12}" y2="{y + 12}"/>')
        parts.append(f'<text x="{x + 28}" y="{y + 16}">{escape(kind)}</text>')
        x += 44 + 6 * len(kind)
    return "\n".join(parts)


def drawn(title: str, plots: Sequence[Plot], marks: Sequence[Mark]) -> str:
    """`marks` are the minutes at which something was broken, and what: a line in every plot."""
    colours = dict(zip(dict.fromkeys(kind for _, kind in marks), COLOURS, strict=False))
    rows = -(-len(plots) // COLUMNS)
    body = "\n".join(
        _drawn(plot, marks, colours, (place % COLUMNS) * WIDTH, HEAD + LEGEND + (place // COLUMNS) * HEIGHT)
        for place, plot in enumerate(plots)
    )
    size = f'width="{COLUMNS * WIDTH}" height="{HEAD + LEGEND + rows * HEIGHT}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}'
        f' viewBox="0 0 {COLUMNS * WIDTH} {HEAD + LEGEND + rows * HEIGHT}">\n<style>{STYLE}</style>\n'
        f'<rect {size} fill="#fff"/>\n<text class="title head" x="8" y="24">{escape(title)}</text>\n'
        f"{_legend(colours, HEAD)}\n{body}\n</svg>\n"
    )
