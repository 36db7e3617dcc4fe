"""A line to type into whose cursor stands still: one that blinks is sent again and again for nothing."""

from textual.reactive import Reactive, reactive
from textual.widgets import Input


class StillInput(Input):
    cursor_blink: Reactive[bool] = reactive(False, init=False)
    _filled_in = ""

    def on_mount(self) -> None:
        self._filled_in = self.value

    def on_input_changed(self) -> None:
        """The next letter takes the place of what was filled in before, never of what somebody typed."""
        self.select_on_focus = self.value == self._filled_in
