"""Whether the list of acts goes with what comes in, or stands still and only counts it."""

from dataclasses import dataclass, replace

from textual.content import Content

from agent_console.domain.audit_trail import AuditTailPage
from agent_console.tui.agent_text import system_text


@dataclass(frozen=True)
class Pause:
    """Since `newest`, an act's seq, what comes in is counted in the order of the seals, up to `counted_to`.

    By seals nobody is missed and nobody counted twice, however late anybody commits. `behind` while there is more
    to count.
    """

    newest: int
    counted_to: int
    new: int = 0
    behind: bool = False

    def counting(self, page: AuditTailPage) -> "Pause":
        new = sum(act.seq > self.newest for act in page.items)
        return replace(self, counted_to=page.position, new=self.new + new, behind=page.next is not None)


def pause_words(pause: Pause | None) -> Content:
    if pause is None:
        return system_text("● following", "$text-success")
    count = f"{pause.new:,}{'+' if pause.behind else ''} new"
    return system_text(f"‖ paused, {count}", "bold $text-warning" if pause.new else "$text-warning")
