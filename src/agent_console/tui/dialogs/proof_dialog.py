"""Proving the audit trail, watched: how far it is, how fast, and what was found."""

from enum import Enum, auto
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from agent_console.domain.audit_proof import STEP, Verification, Verified
from agent_console.domain.errors import ConsoleError
from agent_console.repository.operations.audit_trail import AUDIT_VERIFY
from agent_console.tui.agent_text import agent_block, agent_text, system_text
from agent_console.tui.dialogs.dialog import Dialog
from agent_console.tui.link import Clock, Link
from agent_console.tui.looks import progress_bar

MESSAGE_SHOWN = 1000
AT_ONCE = STEP


class Phase(Enum):
    PROVING = auto()
    STOPPING = auto()
    STOPPED = auto()
    ENDED = auto()


HINTS = {
    Phase.PROVING: "Esc stop",
    Phase.STOPPING: "Stopping after this part …",
    Phase.STOPPED: "Esc close",
    Phase.ENDED: "Esc close",
}


class ProofDialog(Dialog[Verified | None]):
    """Gives what was found as far as it went; None when nothing was proved. Nothing is changed by it."""

    LINES_AROUND = 10
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Stop or close", id="proof.close")]

    def __init__(self, link: Link, clock: Clock) -> None:
        super().__init__()
        self._link = link
        self._clock = clock
        self._asked = Verification(batch_size=AT_ONCE)
        self._begun = clock()
        self._found: Verified | None = None
        self._done = 0
        self._problem = ""
        self.phase = Phase.PROVING
        self._told = Static(system_text("Asking …"))
        self._hint = Static(system_text(HINTS[Phase.PROVING], "$foreground-muted"), classes="hint")

    def compose(self) -> ComposeResult:
        about = system_text("Verify the audit trail", "bold")
        why = system_text("\nEvery hash is taken anew, from the first act to the last seal.", "$foreground-muted")
        with Vertical(classes="dialog"):
            yield Static(about + why, classes="about")
            yield self._told
            yield self._hint

    def on_mount(self) -> None:
        self._prove()

    @work
    async def _prove(self) -> None:
        try:
            while self.phase is Phase.PROVING:
                found = await self._link.call(AUDIT_VERIFY, self._asked)
                self._found = found
                self._done += found.done
                if found.next is None:
                    self._go(Phase.ENDED)
                    return
                self._asked = self._asked.model_copy(update={"after": found.next})
                self._show()
        except ConsoleError as error:
            self._problem = str(error)
        self._go(Phase.STOPPED)

    def _go(self, phase: Phase) -> None:
        self.phase = phase
        self._show()

    def _show(self) -> None:
        self._told.update(self._words())
        self._hint.update(system_text(HINTS[self.phase], "$foreground-muted"))

    def _words(self) -> Content:
        found = self._found
        lines: list[Content] = []
        if found is not None and found.damage is None:
            lines.append(system_text(self._progress(found), "bold"))
        if self._problem:
            lines.append(agent_block(f"✗ {self._problem}", "$text-error"))
        if found is not None:
            lines += self._outcome(found)
        return system_text("\n").join(lines)

    def _progress(self, found: Verified) -> str:
        whole = self._done + found.left
        bar = progress_bar(100 * self._done / whole) if whole else progress_bar(100)
        seconds = (self._clock() - self._begun).total_seconds()
        rate = f", {self._done / seconds:,.0f}/s" if seconds > 0 else ""
        return f"{bar}  {self._done:,} of {whole:,} acts{rate}"

    def _outcome(self, found: Verified) -> list[Content]:
        if found.damage is not None:
            damage = found.damage
            where = "" if damage.position is None else f" at position {damage.position:,}"
            return [
                system_text(f"✗ Damaged ({damage.kind.value}){where}", "bold $text-error"),
                agent_text(damage.message, limit=MESSAGE_SHOWN),
                system_text(f"The {found.position:,} acts before it hold.", "$foreground-muted"),
            ]
        match self.phase:
            case Phase.ENDED:
                unsealed = f" Not sealed yet, but as written: {found.unsealed:,}." if found.unsealed else ""
                words = f"✓ Intact: nobody changed the {found.position:,} sealed acts.{unsealed}"
                return [system_text(words, "bold $text-success")]
            case Phase.STOPPED:
                return [system_text(f"Stopped. The chain holds up to {found.position:,}.", "$text-warning")]
        return []

    def action_leave(self) -> None:
        match self.phase:
            case Phase.PROVING:
                self._go(Phase.STOPPING)
            case Phase.STOPPED | Phase.ENDED:
                self.dismiss(self._found)
