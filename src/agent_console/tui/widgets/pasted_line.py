"""A line to type into that says what became of a paste it could not take as it was."""

from textual import events
from textual.message import Message

from agent_console.tui.widgets.still_input import StillInput


def pasted_lines(text: str) -> tuple[str, ...]:
    """Those that say something. What is copied as a whole line ends with a line break: that is one line."""
    return tuple(line.strip() for line in text.splitlines() if line.strip())


class PastedLine(StillInput):
    """Several lines become one, joined by blanks where it `joins` and they fit; else the first of them is kept.

    A line that is too long is not taken at all: cut off, it would ask for something else. Whatever was not taken
    as it was pasted is told to whoever shows the line, never passed over.
    """

    joins = True

    class Told(Message):
        """What became of a paste; it is true for as long as the line reads `value`."""

        def __init__(self, words: str, value: str) -> None:
            super().__init__()
            self.words = words
            self.value = value

    def on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        lines = pasted_lines(event.text)
        if not lines:
            return
        kept, words = self._one_of(lines) if len(lines) > 1 else (event.text.strip("\r\n"), "")
        if not self._has_room_for(kept):
            words = f"Nothing was pasted: the line takes {self.max_length:,} characters at most."
        self.replace(kept, *self._replaced)
        if words:
            self.post_message(self.Told(words, self.value))

    def _one_of(self, lines: tuple[str, ...]) -> tuple[str, str]:
        """What several lines become, and what is said of that."""
        joined = " ".join(lines)
        if not self.joins:
            return lines[0], f"{len(lines):,} lines were pasted: only the first was kept."
        if not self._has_room_for(joined):
            return lines[0], f"{len(lines):,} lines don't fit into one: only the first was kept."
        return joined, f"{len(lines):,} lines were pasted: they are joined to one."

    @property
    def _replaced(self) -> tuple[int, int]:
        start, end = sorted(self.selection)
        return start, end

    def _has_room_for(self, text: str) -> bool:
        start, end = self._replaced
        return not self.max_length or len(self.value) - (end - start) + len(text) <= self.max_length
