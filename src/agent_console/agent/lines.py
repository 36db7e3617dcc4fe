"""Bytes of a program's output as lines of text, whatever the bytes are."""

from collections.abc import Iterator

LINE_BYTES = 65_536


class Lines:
    """Puts lines together from pieces, and never keeps more than the longest line that is told."""

    def __init__(self, most_bytes: int = LINE_BYTES) -> None:
        self._most_bytes = most_bytes
        self._begun = bytearray()
        self._cut = 0

    def feed(self, piece: bytes) -> Iterator[str]:
        """Every line that ends in this piece."""
        *ended, rest = piece.split(b"\n")
        for part in ended:
            self._keep(part)
            yield self._line()
        self._keep(rest)

    def last(self) -> Iterator[str]:
        """What came after the last line break."""
        if self._begun:
            yield self._line()

    def _keep(self, part: bytes) -> None:
        room = self._most_bytes - len(self._begun)
        self._begun += part[:room]
        self._cut += max(len(part) - room, 0)

    def _line(self) -> str:
        text = self._begun.decode("utf-8", "replace").removesuffix("\r")
        if self._cut:
            text += f"… +{self._cut} bytes"
        self._begun.clear()
        self._cut = 0
        return text
