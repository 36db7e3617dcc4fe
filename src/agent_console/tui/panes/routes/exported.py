"""Where the policy was written to: a path is read and typed somewhere else, so it stays until somebody leaves."""

from pathlib import Path
from typing import ClassVar

from textual.binding import Binding, BindingType

from agent_console.domain.policy_plans import PolicyText
from agent_console.tui.agent_text import agent_text, system_text
from agent_console.tui.facts import Fact, FactSheet, Heading, Remark
from agent_console.tui.panes.panel_screen import PanelScreen
from agent_console.tui.panes.surroundings import Surroundings

HINT = "Only you can read it. Y applies it again, here or in another team; the plan is shown first."


class ExportedScreen(PanelScreen):
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,enter", "close", "Back", id="exported.close")]

    def __init__(self, around: Surroundings, policy: PolicyText, path: Path) -> None:
        super().__init__(around)
        self._policy = policy
        self._path = path

    @property
    def crumb(self) -> str:
        return "Exported"

    def tick(self) -> None:
        self._panel.show(
            FactSheet(
                (
                    Heading(system_text("The policy is written to a file", "bold")),
                    Fact("file", agent_text(str(self._path))),
                    Fact("routes", system_text(f"{self._policy.routes:,}")),
                    Fact("digest", system_text(self._policy.digest)),
                    Remark(system_text(HINT, "$foreground-muted")),
                )
            )
        )
