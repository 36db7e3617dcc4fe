"""What was done to one thing, from the beginning."""

from dataclasses import replace
from datetime import UTC, datetime

from agent_console.domain.audit_trail import AuditFilter
from agent_console.domain.safe_text import shortened
from agent_console.tui.panes.audit.lists import AUDIT, audit_kind
from agent_console.tui.panes.list_kind import ListGroup, ListKind

EVER = datetime(2000, 1, 1, tzinfo=UTC)
NAME_SHOWN = 40


def trail_of(resource_type: str, thing_id: object, name: str = "", above: str = "") -> ListKind:
    """The acts on one thing; `name` is what people call it, `above` the pane to go back to.

    Everything there is, not only the last days: by type and id the acts are found without a search.
    """
    wanted = AuditFilter(resource_type=resource_type, resource_id=str(thing_id), since=EVER)
    return replace(
        audit_kind(lambda: wanted, lambda: None),
        name=f"trail-{thing_id}",
        title=f"Audit trail of {shortened(name or str(thing_id), NAME_SHOWN)}",
        groups=(ListGroup("all", ""),),
        empty="The audit trail holds no act on it.",
        above=above or AUDIT.name,
        read_only=True,
    )
