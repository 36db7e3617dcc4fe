"""A line to type into whose cursor stands still: one that blinks is sent again and again for nothing."""

from textual.reactive import Reactive, reactive
from textual.widgets import Input


class StillInput(Input):
    cursor_blink: Reactive[bool] = reactive(False, init=False)
