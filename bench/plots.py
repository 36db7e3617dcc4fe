"""Lines over time as an SVG of small plots, each with its own scale, from nothing but text."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 420, 150, 56, 26, 22
COLUMNS = 2


@dataclass(frozen=True)
class Plot:
    """`points` are minutes and values; `marks` are minutes at which something was broken."""

    title: str
    unit: str
    points: Sequence[tuple[float, float]]
    marks: Sequence[float] = ()


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def _drawn(plot: Plot, x: float, y: float) -> str:
    """From nothing to the highest: a line that is flat looks flat."""
    end = max((minute for minute, _ in plot.points), default=1.0) or 1.0
    top = max((value for _, value in plot.points), default=1.0) * 1.1 or 1.0
    right, floor = WIDTH - LEFT - 12, HEIGHT - TOP - BOTTOM

    def place(minute: float, value: float) -> str:
        return f"{x + LEFT + right * minute / end:.1f},{y + TOP + floor * (1 - value / top):.1f}"

    ground, left = y + TOP + floor, x + LEFT
    line = " ".join(place(minute, value) for minute, value in plot.points)
    marks = "".join(
        f'<line class="mark" x1="{left + right * minute / end:.1f}" x2="{left + right * minute / end:.1f}"'
        f' y1="{y + TOP}" y2="{ground}"/>'
        for minute in plot.marks
    )
    last = plot.points[-1][1] if plot.points else 0.0
    title = escape(f"{plot.title}: {_short(last)} {plot.unit}")
    return (
        f'<text class="title" x="{x + 8}" y="{y + 16}">{title}</text>'
        f'<text x="{left - 6}" y="{y + TOP + 8}" text-anchor="end">{_short(top)}</text>'
        f'<text x="{left - 6}" y="{ground}" text-anchor="end">0</text>'
        f'<text x="{left + right}" y="{ground + 15}" text-anchor="end">{_short(end)} min</text>'
        f'<line class="axis" x1="{left}" x2="{left + right}" y1="{ground}" y2="{ground}"/>{marks}'
        f'<polyline points="{line}"/>'
    )


def drawn(plots: Sequence[Plot]) -> str:
    rows = -(-len(plots) // COLUMNS)
    body = "\n".join(
        _drawn(plot, (place % COLUMNS) * WIDTH, (place // COLUMNS) * HEIGHT) for place, plot in enumerate(plots)
    )
    width, height = COLUMNS * WIDTH, rows * HEIGHT + 8
    size = f'width="{width}" height="{height}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {size}>\n'
        "<style>text{font:11px sans-serif;fill:#444}.title{font-weight:bold;fill:#111}"
        "polyline{fill:none;stroke:#1f6feb;stroke-width:1.5}.axis{stroke:#999}"
        ".mark{stroke:#d1242f;stroke-dasharray:2 3;opacity:.6}</style>\n"
        f'<rect {size} fill="#fff"/>\n{body}\n</svg>\n'
    )
