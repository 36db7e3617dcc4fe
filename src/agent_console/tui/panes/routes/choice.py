"""What shall happen when one agent asks another: one of a few, seen all at once, and the line that makes it so."""

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

from agent_console.domain.kinds import RoutePolicy
from agent_console.tui.agent_text import system_text
from agent_console.tui.dialogs.operation_form import DoIt
from agent_console.tui.panes.routes.looks import LOOKS, blank

CHOICES: tuple[RoutePolicy | None, ...] = (
    RoutePolicy.ALLOWED,
    RoutePolicy.REQUIRES_HUMAN_APPROVAL,
    RoutePolicy.BLOCKED,
    None,
)


class PolicyChoice(Widget, can_focus=True):
    """Left and right choose; nothing is done by it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "choose(-1)", "Policy before", show=False, id="policy.before"),
        Binding("right,space", "choose(1)", "Next policy", show=False, id="policy.next"),
    ]

    policy: reactive[RoutePolicy | None] = reactive(None, layout=False)

    class Changed(Message):
        pass

    def render(self) -> Content:
        return blank(2).join(self._choice(policy) for policy in CHOICES)

    def _choice(self, policy: RoutePolicy | None) -> Content:
        glyph, word, style = LOOKS[policy]
        words = "asks a person" if policy is RoutePolicy.REQUIRES_HUMAN_APPROVAL else word
        if policy is not self.policy:
            return system_text(f"( ) {glyph} {words}", "$foreground-muted")
        return system_text(f"(•) {glyph} {words}", f"bold {style}").stylize("reverse" if self.has_focus else "")

    def action_choose(self, by: int) -> None:
        self.policy = CHOICES[(CHOICES.index(self.policy) + by) % len(CHOICES)]
        self.post_message(self.Changed())


class SaveIt(DoIt):
    """Says which of the two it does."""

    removes: reactive[bool] = reactive(False)

    def __init__(self) -> None:
        super().__init__("save it", danger=True)

    @property
    def words(self) -> str:
        return "Press y to remove the route" if self.removes else super().words
