"""A line to type into that says what became of a paste it could not take as it was."""

from textual import events
from textual.message import Message
from textual.widgets import Input


def pasted_lines(text: str) -> tuple[str, ...]:
    """Those that say something. What is copied as a whole line ends with a line break: that is one line."""
    return tuple(line.strip() for line in text.splitlines() if line.strip())


class PastedLine(Input):
    """Several lines become one, joined by blanks where it `joins`; else the first of them is kept.

    Whatever was not taken as it was pasted is told to whoever shows the line, never passed over.
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
        if len(lines) == 1:
            kept, words = event.text.strip("\r\n"), ""
        elif self.joins:
            kept = " ".join(lines)
            words = f"{len(lines):,} lines were pasted: they are joined to one."
        else:
            kept = lines[0]
            words = f"{len(lines):,} lines were pasted: only the first was kept."
        start, end = sorted(self.selection)
        if self.max_length and len(self.value) - (end - start) + len(kept) > self.max_length:
            words = f"Nothing was pasted: the line takes {self.max_length:,} characters at most."
        self.replace(kept, start, end)
        if words:
            self.post_message(self.Told(words, self.value))
