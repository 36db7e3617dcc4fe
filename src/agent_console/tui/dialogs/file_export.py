"""Taking something away as a new file, watched: its form is chosen first, and what is stopped leaves nothing."""

import asyncio
from collections.abc import AsyncIterator
from enum import Enum, auto
from pathlib import Path

from textual import on, work
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from agent_console.domain.audit_export import ExportForm
from agent_console.domain.errors import ConsoleError
from agent_console.tui.agent_text import agent_block, agent_text, system_text
from agent_console.tui.dialogs.dialog import Dialog
from agent_console.tui.new_file import NewFile, exports_folder, folder_words, to_its_end, unused_name

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


class FileExport(Dialog[None]):
    """Until all of it was written, and after a stop, there is no file of its name."""

    LINES_AROUND = 12

    def __init__(self, stem: str) -> None:
        """`stem` is how the name of the file begins."""
        super().__init__()
        self._stem = stem
        self._folder = exports_folder()
        self._problem = ""
        self.phase = Phase.CHOOSING
        self.path: Path | None = None
        self._forms = OptionList(*(Option(_form_line(form), id=form.value) for form in FORMS), classes="scrolls")
        self._told = Static(system_text(""))
        self._hint = Static(system_text(HINTS[self.phase], "$foreground-muted"), classes="hint")

    def taken_away(self) -> Content:
        """What is taken away."""
        raise NotImplementedError

    def parts(self, form: ExportForm) -> AsyncIterator[str]:
        """The text of the file, as much of it as comes at once."""
        raise NotImplementedError

    def so_far(self) -> str:
        """How much has been written."""
        raise NotImplementedError

    def in_all(self) -> str:
        """What is in the file; its name follows."""
        raise NotImplementedError

    def compose(self) -> ComposeResult:
        words = f"\nTo a new file in {folder_words(self._folder)} that only you can read"
        with Vertical(classes="dialog"):
            yield Static(self.taken_away() + agent_block(words, "$foreground-muted"), classes="about")
            yield self._forms
            yield self._told
            yield self._hint

    def on_mount(self) -> None:
        self._forms.focus()

    @on(OptionList.OptionSelected)
    def _chosen(self, message: OptionList.OptionSelected) -> None:
        if self.phase is Phase.CHOOSING and message.option.id is not None:
            self._forms.display = False
            self._go(Phase.WRITING)
            self._write(ExportForm(message.option.id))

    @work
    async def _write(self, form: ExportForm) -> None:
        try:
            path = await asyncio.to_thread(unused_name, self._folder, self._stem, form.value)
            file = await to_its_end(NewFile.begin, path, undo=NewFile.drop)
        except OSError as error:
            self._fail(f"{self._folder} can't be written to: {error.strerror or error}.")
            return
        try:
            await self._fill(file, form)
        except OSError as error:
            self._fail(f"{path} can't be written: {error.strerror or error}.")
        except ConsoleError as error:
            self._fail(str(error))
        finally:
            # Also when the console is left in the middle of it.
            if self.path is None:
                file.drop()

    async def _fill(self, file: NewFile, form: ExportForm) -> None:
        async for text in self.parts(form):
            await to_its_end(file.write, text)
            if self.phase is not Phase.WRITING:
                self._go(Phase.STOPPED)
                return
            self._show()
        await to_its_end(file.keep)
        self.path = file.path
        self._go(Phase.DONE)

    def _fail(self, problem: str) -> None:
        self._problem = problem
        self._go(Phase.STOPPED)

    def _go(self, phase: Phase) -> None:
        self.phase = phase
        self._show()

    def _show(self) -> None:
        self._told.update(self._words())
        self._hint.update(system_text(HINTS[self.phase], "$foreground-muted"))

    def _words(self) -> Content:
        match self.phase:
            case Phase.WRITING | Phase.STOPPING:
                return system_text(self.so_far(), "bold")
            case Phase.STOPPED if self._problem:
                return agent_block(f"✗ {self._problem}\nNothing was kept.", "$text-error")
            case Phase.STOPPED:
                return system_text("Stopped. What was written so far has been removed.", "$text-warning")
            case Phase.DONE:
                done = system_text(f"✓ {self.in_all()}\n", "bold $text-success")
                return done + agent_text(str(self.path), limit=500)
        return system_text("")

    def action_leave(self) -> None:
        match self.phase:
            case Phase.WRITING:
                self._go(Phase.STOPPING)
            case Phase.CHOOSING | Phase.STOPPED | Phase.DONE:
                self.dismiss(None)


def _form_line(form: ExportForm) -> Content:
    return system_text(f"{form.value:<6}", "bold") + system_text(FORMS[form])
