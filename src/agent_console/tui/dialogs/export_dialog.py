"""Taking the audit trail away as a file, watched."""

import asyncio
from enum import Enum, auto
from pathlib import Path
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from agent_console.domain.audit_export import AuditExport, ExportForm
from agent_console.domain.audit_trail import LIMIT_MAX, AuditFilter
from agent_console.domain.errors import ConsoleError
from agent_console.repository.operations.audit_trail import AUDIT_EXPORT
from agent_console.tui.agent_text import agent_block, agent_text, system_text
from agent_console.tui.dialogs.dialog import Dialog
from agent_console.tui.link import Link
from agent_console.tui.looks import progress_bar
from agent_console.tui.new_file import NewFile, exports_folder, folder_words, unused_name

AT_ONCE = LIMIT_MAX
FORMS = {
    ExportForm.JSONL: "Lines of JSON, everything as it is",
    ExportForm.CSV: "CSV for a spreadsheet; no cell of it is a formula",
}


class Phase(Enum):
    CHOOSING = auto()
    WRITING = auto()
    STOPPING = auto()
    STOPPED = auto()
    DONE = auto()


HINTS = {
    Phase.CHOOSING: "Enter write the file   Esc leave",
    Phase.WRITING: "Esc stop, and remove what was written",
    Phase.STOPPING: "Stopping …",
    Phase.STOPPED: "Esc close",
    Phase.DONE: "Esc close",
}


class ExportDialog(Dialog[Path | None]):
    """Gives the file when all of it was written. Until then, and after a stop, there is none of its name."""

    LINES_AROUND = 12
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Stop or leave", id="export.close")]

    def __init__(self, link: Link, wanted: AuditFilter, words: str, stem: str, head: int) -> None:
        """`words` say what `wanted` is, `stem` is how the file begins, `head` is where the chain ends."""
        super().__init__()
        self._link = link
        self._wanted = wanted
        self._what = words
        self._stem = stem
        self._head = head
        self._folder = exports_folder()
        self._path: Path | None = None
        self._rows = 0
        self._position = 0
        self._problem = ""
        self.phase = Phase.CHOOSING
        self._forms = OptionList(*(Option(_form_line(form), id=form.value) for form in FORMS), classes="scrolls")
        self._told = Static(system_text(""))
        self._hint = Static(system_text(""), classes="hint")

    def compose(self) -> ComposeResult:
        about = system_text("Export the sealed acts\n", "bold") + agent_text(self._what, limit=300)
        words = f"To a new file in {folder_words(self._folder)} that only you can read"
        where = system_text("\n") + agent_text(words, "$foreground-muted", limit=300)
        with Vertical(classes="dialog"):
            yield Static(about + where, classes="about")
            yield self._forms
            yield self._told
            yield self._hint

    def on_mount(self) -> None:
        super().on_mount()
        self._forms.focus()
        self._show()

    @on(OptionList.OptionSelected)
    def _chosen(self, message: OptionList.OptionSelected) -> None:
        if self.phase is Phase.CHOOSING and message.option.id is not None:
            self._go(Phase.WRITING)
            self._write(ExportForm(message.option.id))

    @work
    async def _write(self, form: ExportForm) -> None:
        try:
            self._path = await asyncio.to_thread(unused_name, self._folder, self._stem, form.value)
            file = await asyncio.to_thread(NewFile.begin, self._path)
        except OSError as error:
            self._fail(f"{self._folder} can't be written to: {error.strerror or error}.")
            return
        kept = False
        try:
            kept = await self._fill(file, form)
        except OSError as error:
            self._fail(f"{self._path} can't be written: {error.strerror or error}.")
        except ConsoleError as error:
            self._fail(str(error))
        finally:
            # Also when the console is left in the middle of it.
            if not kept:
                file.drop()
        if not self._problem:
            self._go(Phase.DONE if kept else Phase.STOPPED)

    async def _fill(self, file: NewFile, form: ExportForm) -> bool:
        """Part by part; False when somebody stopped it."""
        given = {"format": form, "limit": AT_ONCE}
        asked = AuditExport.model_validate(self._wanted.model_dump(exclude_none=True) | given)
        while self.phase is Phase.WRITING:
            part = await self._link.call(AUDIT_EXPORT, asked)
            await asyncio.to_thread(file.write, part.text)
            self._rows += part.rows
            self._position = part.position
            if part.next is None:
                await asyncio.to_thread(file.keep)
                return True
            asked = asked.model_copy(update={"after_position": int(part.next)})
            self._show()
        return False

    def _fail(self, problem: str) -> None:
        self._problem = problem
        self._go(Phase.STOPPED)

    def _go(self, phase: Phase) -> None:
        self.phase = phase
        self._forms.display = phase is Phase.CHOOSING
        self._show()

    def _show(self) -> None:
        self._told.update(self._words())
        self._hint.update(system_text(HINTS[self.phase], "$foreground-muted"))

    def _words(self) -> Content:
        match self.phase:
            case Phase.WRITING | Phase.STOPPING:
                whole = max(self._head, self._position, 1)
                bar = progress_bar(100 * self._position / whole)
                return system_text(f"{bar}  {self._rows:,} acts written", "bold")
            case Phase.STOPPED if self._problem:
                return agent_block(f"✗ {self._problem}\nNothing was kept.", "$text-error")
            case Phase.STOPPED:
                return system_text("Stopped. What was written so far has been removed.", "$text-warning")
            case Phase.DONE:
                done = system_text(
                    f"✓ {self._rows:,} acts, up to position {self._position:,}, in\n", "bold $text-success"
                )
                return done + agent_text(str(self._path), limit=500)
        return system_text("")

    def action_leave(self) -> None:
        match self.phase:
            case Phase.WRITING:
                self._go(Phase.STOPPING)
            case Phase.CHOOSING | Phase.STOPPED:
                self.dismiss(None)
            case Phase.DONE:
                self.dismiss(self._path)


def _form_line(form: ExportForm) -> Content:
    return system_text(f"{form.value:<6}", "bold") + system_text(FORMS[form])
