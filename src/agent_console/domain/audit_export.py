"""The trail as a file: one JSON object on each line, or CSV that no spreadsheet takes for a formula."""

import csv
import io
import json
from collections.abc import Sequence
from enum import StrEnum

from pydantic import Field

from agent_console.domain.audit_trail import LIMIT_MAX, AuditFilter, AuditRow
from agent_console.domain.records import LARGEST_NUMBER, Record

COLUMNS = tuple(AuditRow.model_fields)
# What a spreadsheet begins to calculate at, also behind blanks and in full width.
FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")


class ExportForm(StrEnum):
    JSONL = "jsonl"
    CSV = "csv"


class AuditExport(AuditFilter):
    """A part of the export: as many acts as fit, beginning after a position."""

    format: ExportForm = Field(ExportForm.JSONL, description="How it is written.")
    after_position: int = Field(
        0, ge=0, le=LARGEST_NUMBER, description="Only what was sealed after this position."
    )
    limit: int = Field(LIMIT_MAX, ge=1, le=LIMIT_MAX, description="How many rows at most in one part.")


class ExportPart(Record):
    """Parts put one after the other are the file; the first part of a CSV brings its header."""

    text: str
    rows: int
    position: int = Field(description="Everything up to here is in it.")
    next: str | None = Field(None, description="Ask again with after_position=this; null at the end.")


def as_lines(rows: Sequence[AuditRow]) -> str:
    """In ASCII: whoever looks at the file in a terminal must not be sent what somebody wrote for one."""
    return "".join(f"{row.model_dump_json(ensure_ascii=True)}\n" for row in rows)


def as_csv(rows: Sequence[AuditRow], *, header: bool) -> str:
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    if header:
        writer.writerow(COLUMNS)
    for row in rows:
        values = row.model_dump(mode="json")
        writer.writerow([harmless_cell(values[name]) for name in COLUMNS])
    return out.getvalue()


def harmless_cell(value: object) -> str:
    """A cell as plain text: control characters become visible, and what looks like a formula gets an apostrophe.

    A number is no formula, and whoever reads the file wants it as one.
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    plain = "".join(letter if letter.isprintable() else f"\\u{ord(letter):04x}" for letter in text)
    return f"'{plain}" if text[:1] in ("\t", "\r", "\n") or plain.lstrip().startswith(FORMULA) else plain
