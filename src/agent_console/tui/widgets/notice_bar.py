"""A line that stands below the header while something is wrong, and says what is being done about it."""

from textual.content import Content
from textual.widgets import Static

from agent_console.tui.agent_text import agent_text, system_text
from agent_console.tui.link import LinkState, LinkStatus


def notice_of(status: LinkStatus) -> Content | None:
    if status.state is LinkState.UP:
        return None
    if status.state is LinkState.STARTING:
        return agent_text(f"◌ {status.message or 'Connecting …'}", limit=300)
    hint = f" {status.hint}" if status.hint else ""
    return agent_text(f"✗ {status.message}{hint}", limit=600)


class NoticeBar(Static):
    DEFAULT_CSS = """
    NoticeBar { height: auto; max-height: 3; display: none; padding: 0 1; background: $warning-muted; }
    NoticeBar.shown { display: block; }
    NoticeBar.lost { background: $error-muted; }
    """

    def __init__(self) -> None:
        super().__init__(system_text(""))

    def follow(self, status: LinkStatus) -> None:
        notice = notice_of(status)
        self.set_class(notice is not None, "shown")
        self.set_class(status.state is LinkState.LOST, "lost")
        self.update(system_text("") if notice is None else notice)
