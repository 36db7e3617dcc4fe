"""To whom something is said: nobody in particular, some agents of the thread, or all of them."""

from collections.abc import Mapping
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Static
from textual.widgets.selection_list import Selection

from agent_console.domain.ids import AgentId
from agent_console.domain.messages import RECIPIENTS
from agent_console.tui.agent_text import agent_text, system_text
from agent_console.tui.dialogs.dialog import Dialog
from agent_console.tui.widgets.ticks import TickList

EVERYBODY = "everybody"
NAME_SHOWN = 60

Recipients = tuple[tuple[AgentId, ...], bool]


class RecipientsDialog(Dialog[Recipients | None]):
    """Choosing sends nothing. Whoever is chosen starts a run when the message is sent."""

    LINES_AROUND = 9
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "done", "Done", priority=True, id="recipients.done"),
        Binding("escape", "leave", "Leave", id="recipients.leave"),
    ]

    def __init__(self, names: Mapping[AgentId, str], to: tuple[AgentId, ...], broadcast: bool) -> None:
        super().__init__()
        self._agents = dict(names)
        everybody = Selection(system_text("every agent of the thread", "bold"), EVERYBODY, broadcast)
        single = [
            Selection(agent_text(name, limit=NAME_SHOWN), str(agent_id), agent_id in to)
            for agent_id, name in self._agents.items()
        ]
        self._list = TickList[str](everybody, *single, classes="scrolls")
        self._problem = Static(system_text(""), classes="problem")

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(system_text("Who shall act on it?", "bold"), classes="about")
            yield self._list
            yield self._problem
            yield Static(
                system_text("Space marks   Enter done   Esc leaves it as it was", "$foreground-muted"),
                classes="hint",
            )

    def on_mount(self) -> None:
        self._list.focus()

    def action_done(self) -> None:
        chosen = set(self._list.selected)
        to = tuple(agent_id for agent_id in self._agents if str(agent_id) in chosen)
        if EVERYBODY in chosen:
            self.dismiss(((), True))
        elif len(to) > RECIPIENTS:
            self._problem.update(system_text(f"At most {RECIPIENTS} agents; or all of them.", "$text-error"))
        else:
            self.dismiss((to, False))
