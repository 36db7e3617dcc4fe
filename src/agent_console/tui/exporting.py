"""A list as a file: every row that its filter finds, page by page, in the order of the list."""

import csv
import io
import json
from collections.abc import AsyncIterator, Sequence

from agent_console.domain.audit_export import ExportForm, harmless_cell
from agent_console.domain.records import PAGE_LIMIT_MAX, Page, Record, Request
from agent_console.repository.operations import AnyOperation
from agent_console.tui.link import Link


async def pages_of(link: Link, listing: AnyOperation, asked: Request) -> AsyncIterator[Page[Record]]:
    """A page may hold next to nothing; only the last one says that there is no next."""
    after: str | None = None
    while True:
        place = {"limit": PAGE_LIMIT_MAX, "after": after}
        page: Page[Record] = await link.call(listing, asked.model_copy(update=place))
        yield page
        if (after := page.next) is None:
            return


def written(rows: Sequence[Record], model: type[Record], form: ExportForm, *, header: bool) -> str:
    """Lines of JSON in plain ASCII, or CSV in which no cell is a formula."""
    if form is ExportForm.JSONL:
        return "".join(f"{json.dumps(row.model_dump(mode='json'), ensure_ascii=True)}\n" for row in rows)
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    names = tuple(model.model_fields)
    if header:
        writer.writerow(names)
    for row in rows:
        values = row.model_dump(mode="json")
        writer.writerow([harmless_cell(values[name]) for name in names])
    return out.getvalue()
