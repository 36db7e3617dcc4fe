"""Taking a list away as a file, as it is filtered, watched."""

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

from agent_console.domain.audit_export import ExportForm
from agent_console.domain.errors import ConsoleError
from agent_console.domain.records import Request
from agent_console.tui.actions import record_of
from agent_console.tui.agent_text import agent_block, agent_text, system_text
from agent_console.tui.dialogs.dialog import Dialog
from agent_console.tui.exporting import pages_of, written
from agent_console.tui.new_file import NewFile, exports_folder, folder_words, unused_name
from agent_console.tui.panes.list_kind import ListKind
from agent_console.tui.panes.surroundings import Surroundings

FORMS = {
    ExportForm.JSONL: "Lines of JSON, every field as it is",
    ExportForm.CSV: "CSV for a spreadsheet; no cell of it is a formula",
}


class Phase(Enum):
    CHOOSING = auto()
    WRITING = auto()
    STOPPING = auto()
    ENDED = auto()


HINTS = {
    Phase.CHOOSING: "Enter write the file   Esc leave",
    Phase.WRITING: "Esc stop, and remove what was written",
    Phase.STOPPING: "Stopping …",
    Phase.ENDED: "Esc close",
}


class ListExport(Dialog[None]):
    """Until all of it was written, and after a stop, there is no file of its name."""

    LINES_AROUND = 12
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Stop or leave", id="list_export.close")]

    def __init__(self, kind: ListKind, asked: Request, filter_text: str, around: Surroundings) -> None:
        super().__init__()
        self._kind = kind
        self._asked = asked
        self._filter_text = filter_text
        self._around = around
        self._folder = exports_folder()
        self._rows = 0
        self.phase = Phase.CHOOSING
        self.path: Path | None = None
        lines = (Option(_form_line(form), id=form.value) for form in FORMS)
        self._forms = OptionList(*lines, classes="scrolls")
        self._told = Static(system_text(""))
        self._hint = Static(system_text(HINTS[self.phase], "$foreground-muted"), classes="hint")

    def compose(self) -> ComposeResult:
        filtered = f"\nOnly what matches {self._filter_text}" if self._filter_text else ""
        words = f"To a new file in {folder_words(self._folder)} that only you can read"
        with Vertical(classes="dialog"):
            yield Static(
                system_text("Export ", "bold")
                + agent_text(self._kind.title, "bold")
                + agent_block(f"{filtered}\n{words}", "$foreground-muted"),
                classes="about",
            )
            yield self._forms
            yield self._told
            yield self._hint

    def on_mount(self) -> None:
        super().on_mount()
        self._forms.focus()

    @on(OptionList.OptionSelected)
    def _chosen(self, message: OptionList.OptionSelected) -> None:
        if self.phase is Phase.CHOOSING and message.option.id is not None:
            self._forms.display = False
            self._go(Phase.WRITING, system_text("Writing …", "bold"))
            self._write(ExportForm(message.option.id))

    @work
    async def _write(self, form: ExportForm) -> None:
        stem = f"{self._kind.list_operation.noun}-{self._around.clock():%Y%m%dT%H%M%SZ}"
        try:
            path = await asyncio.to_thread(unused_name, self._folder, stem, form.value)
            file = await asyncio.to_thread(NewFile.begin, path)
        except OSError as error:
            self._go(Phase.ENDED, _failed(f"{self._folder} can't be written to: {error.strerror or error}."))
            return
        try:
            await self._fill(file, form)
        except OSError as error:
            self._go(Phase.ENDED, _failed(f"{path} can't be written: {error.strerror or error}."))
        except ConsoleError as error:
            self._go(Phase.ENDED, _failed(str(error)))
        finally:
            # Also when the console is left in the middle of it.
            if self.path is None:
                file.drop()

    async def _fill(self, file: NewFile, form: ExportForm) -> None:
        model = record_of(self._kind.list_operation)
        header = True
        async for page in pages_of(self._around.link, self._kind.list_operation, self._asked):
            await asyncio.to_thread(file.write, written(page.items, model, form, header=header))
            header = False
            self._rows += len(page.items)
            if self.phase is not Phase.WRITING:
                self._go(Phase.ENDED, system_text("Stopped. What was written has been removed.", "$text-warning"))
                return
            self._told.update(system_text(f"{self._rows:,} rows written", "bold"))
        await asyncio.to_thread(file.keep)
        self.path = file.path
        done = system_text(f"✓ {self._rows:,} rows in\n", "bold $text-success")
        self._go(Phase.ENDED, done + agent_text(str(file.path), limit=500))

    def _go(self, phase: Phase, told: Content) -> None:
        self.phase = phase
        self._told.update(told)
        self._hint.update(system_text(HINTS[phase], "$foreground-muted"))

    def action_leave(self) -> None:
        if self.phase is Phase.WRITING:
            self._go(Phase.STOPPING, system_text(f"{self._rows:,} rows written", "bold"))
        elif self.phase in (Phase.CHOOSING, Phase.ENDED):
            self.dismiss(None)


def _failed(problem: str) -> Content:
    return agent_block(f"✗ {problem}\nNothing was kept.", "$text-error")


def _form_line(form: ExportForm) -> Content:
    return system_text(f"{form.value:<6}", "bold") + system_text(FORMS[form])
