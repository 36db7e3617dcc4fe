"""One thing of a list by its id, also where nothing answers with just one."""

from agent_console.domain.errors import NotFound
from agent_console.domain.records import PAGE_LIMIT_MAX, Record
from agent_console.tui.link import Link
from agent_console.tui.panes.list_kind import ListKind

PAGES_LOOKED_AT = 25


async def record_by_id(link: Link, kind: ListKind, thing_id: str) -> Record:
    """As it is now."""
    if kind.get_operation is not None and kind.asked is not None:
        record: Record = await link.call(kind.get_operation, kind.asked(thing_id))
        return record
    found = await _listed(link, kind, thing_id.lower())
    if found is None:
        command = kind.list_operation.noun.replace("_", "-")
        raise NotFound(
            f"{kind.title}: none of those that were looked at has the {kind.key} {thing_id}.",
            hint=f"Put the cursor on it in :{command} and press a.",
        )
    return found


async def _listed(link: Link, kind: ListKind, key: str) -> Record | None:
    after: str | None = None
    for _ in range(PAGES_LOOKED_AT):
        page = await link.call(kind.list_operation, kind.query(kind.groups[0].key, PAGE_LIMIT_MAX, after))
        found: Record | None = next((item for item in page.items if str(getattr(item, kind.key)) == key), None)
        # What is listed whole has no next page.
        after = getattr(page, "next", None)
        if found is not None or after is None:
            return found
    return None
