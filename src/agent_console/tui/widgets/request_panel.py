"""A request to be read to its end: knows whether the end has been on the screen."""

from textual.message import Message

from agent_console.tui.widgets.detail import DetailPanel


class RequestPanel(DetailPanel):
    """Tells once when the last line of what it shows has been seen; other words begin anew."""

    class EndSeen(Message):
        pass

    def __init__(self, *, classes: str | None = None) -> None:
        super().__init__(classes=classes)
        self.end_seen = False

    def read_anew(self) -> None:
        """What is shown next has been read by nobody."""
        self.end_seen = False
        self.scroll_to(y=0, animate=False, force=True, immediate=True)
        self.call_after_refresh(self.look)

    def on_resize(self) -> None:
        self.call_after_refresh(self.look)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self.look()

    def look(self) -> None:
        """Counted in lines of what is shown, since a panel that was not laid out yet seems to be at its end."""
        height = self.scrollable_content_region.height
        lines = self._shown.plain.count("\n") + 1 if self._shown.plain else 0
        if self.end_seen or not lines or not height:
            return
        if round(self.scroll_y) + height >= lines:
            self.end_seen = True
            self.post_message(self.EndSeen())
