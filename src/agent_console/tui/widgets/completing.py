"""Going through what fits at one place of a line, one Tab after another."""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Completing:
    before: str
    after: str
    choices: tuple[str, ...]
    chosen: int = 0

    @classmethod
    def between(cls, text: str, start: int, end: int, choices: tuple[str, ...]) -> "Completing | None":
        return cls(text[:start], text[end:], choices) if choices else None

    @property
    def text(self) -> str:
        return self.before + self.choices[self.chosen] + self.after

    @property
    def cursor(self) -> int:
        return len(self.before) + len(self.choices[self.chosen])

    @property
    def is_only_one(self) -> bool:
        return len(self.choices) == 1

    def next(self) -> "Completing":
        return replace(self, chosen=(self.chosen + 1) % len(self.choices))


@dataclass
class TypedBefore:
    """The lines that were given before. Going back keeps what was being typed."""

    lines: tuple[str, ...] = ()
    draft: str = ""
    back: int = 0

    MOST = 50

    def add(self, line: str) -> None:
        if line and line not in self.lines[-1:]:
            self.lines = (*self.lines, line)[-self.MOST :]
        self.back = 0

    def go(self, steps: int, typed: str) -> str:
        """The line so many steps further back; at the end of the way is what was being typed."""
        if self.back == 0:
            self.draft = typed
        self.back = max(0, min(len(self.lines), self.back + steps))
        return self.lines[-self.back] if self.back else self.draft
