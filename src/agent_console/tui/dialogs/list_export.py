"""Taking a list away as a file, as it is filtered."""

from collections.abc import AsyncIterator
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content

from agent_console.domain.audit_export import ExportForm
from agent_console.domain.records import Request
from agent_console.tui.actions import record_of
from agent_console.tui.agent_text import agent_block, agent_text, system_text
from agent_console.tui.dialogs.file_export import FileExport
from agent_console.tui.exporting import pages_of, written
from agent_console.tui.panes.list_kind import ListKind
from agent_console.tui.panes.surroundings import Surroundings


class ListExport(FileExport):
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Stop or leave", id="list_export.close")]

    def __init__(self, kind: ListKind, asked: Request, filter_text: str, around: Surroundings) -> None:
        super().__init__(f"{kind.list_operation.noun}-{around.clock():%Y%m%dT%H%M%SZ}")
        self._kind = kind
        self._asked = asked
        self._filter_text = filter_text
        self._link = around.link
        self._rows = 0

    def taken_away(self) -> Content:
        title = system_text("Export ", "bold") + agent_text(self._kind.title, "bold")
        filtered = f"\nOnly what matches {self._filter_text}" if self._filter_text else ""
        return title + agent_block(filtered, "$foreground-muted")

    async def parts(self, form: ExportForm) -> AsyncIterator[str]:
        listing = self._kind.list_operation
        header = True
        async for page in pages_of(self._link, listing, self._asked):
            self._rows += len(page.items)
            yield written(page.items, record_of(listing), form, header=header)
            header = False

    def so_far(self) -> str:
        return f"{self._rows:,} rows written" if self._rows else "Writing …"

    def in_all(self) -> str:
        return f"{self._rows:,} rows in"
