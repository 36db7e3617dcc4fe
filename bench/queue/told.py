"""What a part of the bench found out: tables, and whether limits are kept."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """`meaning` says exactly what the figures are."""

    title: str
    meaning: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def as_text(self) -> str:
        lines = (self.columns, *self.rows)
        widths = [max(len(line[place]) for line in lines) for place in range(len(self.columns))]
        return "\n".join((self.title, *(_aligned(line, widths) for line in lines), ""))

    def as_markdown(self) -> str:
        rule = ("---", *("---:" for _ in self.columns[1:]))
        table = "\n".join(f"| {' | '.join(line)} |" for line in (self.columns, rule, *self.rows))
        return f"## {self.title}\n\n{self.meaning}\n\n{table}\n"


def _aligned(line: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = (f"{cell:>{width}}" for cell, width in zip(line, widths, strict=True))
    return "   ".join((f"  {first.strip():<{widths[0]}}", *others))


@dataclass(frozen=True)
class Limit:
    """What has to hold, as a figure that may not be lower, or not be higher, than its bound."""

    what: str
    measured: float
    bound: float
    at_least: bool = True
    unit: str = ""

    @property
    def is_met(self) -> bool:
        return self.measured >= self.bound if self.at_least else self.measured <= self.bound

    @property
    def cells(self) -> tuple[str, ...]:
        word = "at least" if self.at_least else "at most"
        return (
            self.what,
            f"{word} {self.bound:g}{self.unit}",
            f"{self.measured:.2f}{self.unit}",
            "met" if self.is_met else "NOT met",
        )


@dataclass(frozen=True)
class Found:
    tables: tuple[Table, ...]
    limits: tuple[Limit, ...] = ()


def limits_table(limits: Iterable[Limit]) -> Table:
    return Table(
        title="Limits",
        meaning="Ratios of figures from this one run; the tables below tell what each figure means.",
        columns=("what", "limit", "measured", ""),
        rows=tuple(limit.cells for limit in limits),
    )


def number(value: float | None, digits: int = 0) -> str:
    return "—" if value is None else f"{value:,.{digits}f}"
