"""The second guard behind `safe_text`: no line of any widget carries what could act on a terminal."""

from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from agent_console.tui.terminal.hidden_characters import is_plain, shown


class LineGuard(LineFilter):
    """Shows what is hidden, in as many cells as the segment had: see `hidden_characters`.

    Control segments are dropped: a line is only ever text, and Textual would write their codes raw.
    """

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [
            segment if is_plain(segment.text) else Segment(shown(segment.text), segment.style)
            for segment in segments
            if not segment.control
        ]
