"""Taking the audit trail away as a file."""

from collections.abc import AsyncIterator
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content

from agent_console.domain.audit_export import AuditExport, ExportForm
from agent_console.domain.audit_trail import LIMIT_MAX, AuditFilter
from agent_console.repository.operations.audit_trail import AUDIT_EXPORT
from agent_console.tui.agent_text import agent_text, system_text
from agent_console.tui.dialogs.file_export import FileExport
from agent_console.tui.link import Link
from agent_console.tui.looks import progress_bar

AT_ONCE = LIMIT_MAX


class TrailExport(FileExport):
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Stop or leave", id="export.close")]

    def __init__(self, link: Link, wanted: AuditFilter, words: str, stem: str, head: int) -> None:
        """`words` say what `wanted` is, `head` is where the chain ends."""
        super().__init__(stem)
        self._link = link
        self._wanted = wanted
        self._what = words
        self._head = head
        self._rows = 0
        self._position = 0

    def taken_away(self) -> Content:
        return system_text("Export the sealed acts\n", "bold") + agent_text(self._what, limit=300)

    async def parts(self, form: ExportForm) -> AsyncIterator[str]:
        given = {"format": form, "limit": AT_ONCE}
        asked = AuditExport.model_validate(self._wanted.model_dump(exclude_none=True) | given)
        while True:
            part = await self._link.call(AUDIT_EXPORT, asked)
            self._rows += part.rows
            self._position = part.position
            yield part.text
            if part.next is None:
                return
            asked = asked.model_copy(update={"after_position": int(part.next)})

    def so_far(self) -> str:
        whole = max(self._head, self._position, 1)
        return f"{progress_bar(100 * self._position / whole)}  {self._acts()} written"

    def in_all(self) -> str:
        return f"{self._acts()}, up to position {self._position:,}, in"

    def _acts(self) -> str:
        return "1 act" if self._rows == 1 else f"{self._rows:,} acts"
