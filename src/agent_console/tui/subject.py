"""What a key was pressed on."""

from dataclasses import dataclass

from agent_console.domain.records import Record, Request
from agent_console.tui.panes.list_kind import ListKind


@dataclass(frozen=True)
class Subject:
    """One thing of a list, those that are marked, or with neither the list itself as `query` filters it."""

    kind: ListKind
    query: Request
    record: Record | None = None
    marked: tuple[Record, ...] = ()

    def key_of(self, record: Record) -> str:
        return str(getattr(record, self.kind.key))
