"""The commands that README and docs show: every line of a block that begins with ```sh.

A block that can't be run here as it stands has a comment before it that a reader of the page never sees:
`<!-- not run: why -->`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
BLOCK = re.compile(
    r"(?:<!-- not run: (?P<why>[^\n]+?) -->\n)?^```sh\n(?P<lines>.*?)^```$", re.MULTILINE | re.DOTALL
)
GIVEN = re.compile(r"<<'(?P<end>\w+)'")
PROFILE = re.compile(r"^```toml\n# \S*/config\.toml$", re.MULTILINE)


@dataclass(frozen=True)
class Command:
    document: str
    line: int
    words: str

    @property
    def place(self) -> str:
        return f"{self.document}:{self.line}"


@dataclass(frozen=True)
class Document:
    name: str
    commands: tuple[Command, ...]
    not_run: tuple[str, ...]
    """Why each of the other blocks is not run."""
    profile_line: int
    """Where the page writes a profile of its own, or 0: what stands before has to say itself where it goes."""


def documents() -> tuple[Path, ...]:
    return (REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md")))


def read(path: Path) -> Document:
    name, text = str(path.relative_to(REPOSITORY)), path.read_text(encoding="utf-8")
    commands: list[Command] = []
    not_run: list[str] = []
    for block in BLOCK.finditer(text):
        if block["why"]:
            not_run.append(block["why"])
        else:
            first = text.count("\n", 0, block.start("lines")) + 1
            commands += _commands(name, first, block["lines"])
    profile = PROFILE.search(text)
    profile_line = text.count("\n", 0, profile.start()) + 1 if profile else 0
    return Document(name, tuple(commands), tuple(not_run), profile_line)


def _commands(document: str, first: int, lines: str) -> Iterator[Command]:
    """A command may go on over several lines: after a backslash, and until the end of a text that it is given."""
    begun: list[str] = []
    until: str | None = None
    for number, line in enumerate(lines.splitlines(), first):
        begun.append(line)
        if until is None and (given := GIVEN.search(line)):
            until = given["end"]
        elif line == until:
            until = None
        if until is None and not line.endswith("\\"):
            words = "\n".join(begun)
            if words.strip() and not words.lstrip().startswith("#"):
                yield Command(document, number - len(begun) + 1, words)
            begun = []
