"""What can be ticked, with a tick that is seen: Textual's own tells on from off by its colour alone."""

from typing import TypeVar

from rich.segment import Segment
from rich.style import Style
from textual.content import Content
from textual.strip import Strip
from textual.widgets import Checkbox, SelectionList

ON, OFF = "[x]", "[ ]"

Value = TypeVar("Value")


class TickBox(Checkbox):
    BUTTON_LEFT = BUTTON_RIGHT = ""

    def render(self) -> Content:
        self.BUTTON_INNER = ON if self.value else OFF
        return super().render()


class TickList(SelectionList[Value]):
    def render_line(self, y: int) -> Strip:
        line = super().render_line(y)
        place = self.scroll_offset.y + y
        if place >= self.option_count:
            return line
        tick = ON if self.get_option_at_index(place).value in self.selected else OFF
        left, _, _, blank, *words = line
        # In the style of the words; what a click there means is told by the tick that Textual drew.
        clicked = Style(meta=left.style.meta) if left.style is not None else Style()
        return Strip([Segment(tick, (blank.style or Style()) + clicked), blank, *words])
