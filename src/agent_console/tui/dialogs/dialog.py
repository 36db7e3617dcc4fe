"""What every dialog has in common."""

from typing import ClassVar, TypeVar

from textual.screen import ModalScreen

from agent_console.tui.closing import ClosesItself

Chosen = TypeVar("Chosen")

LEAST_LINES = 3


class Dialog(ClosesItself[Chosen], ModalScreen[Chosen]):
    """However much there is to scroll through, what is around it stays on the screen.

    That which scrolls has the class `scrolls`. It is measured here because Textual does not heed a greatest
    height in units of the screen when it works out how tall the dialog around it has to be.
    """

    LINES_AROUND: ClassVar[int]

    def on_mount(self) -> None:
        self._keep_room()

    def on_resize(self) -> None:
        self._keep_room()

    def action_leave(self) -> None:
        """Nothing was chosen."""
        self.dismiss(None)

    def _keep_room(self) -> None:
        for scrolling in self.query(".scrolls"):
            scrolling.styles.max_height = max(LEAST_LINES, self.app.size.height - self.LINES_AROUND)
