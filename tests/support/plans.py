"""What PostgreSQL did for a question of the program, in its own words."""

import re
from collections.abc import Mapping
from types import MappingProxyType

from sqlalchemy import Connection, Select, TextClause

NOTHING: Mapping[str, object] = MappingProxyType({})


def plan_of(
    connection: Connection,
    question: Select[tuple[object, ...]] | TextClause,
    facts: Mapping[str, object] = NOTHING,
) -> str:
    """The plan with the rows that were really read; the question is asked for that."""
    compiled = question.compile(connection, compile_kwargs={"render_postcompile": True})
    asked = {name: facts.get(name, value) for name, value in compiled.params.items()}
    found = connection.exec_driver_sql(f"explain (analyze, timing off) {compiled}", asked)
    return "\n".join(row[0] for row in found)


def rows_touched(plan: str, *tables: str) -> int:
    """Rows that any scan of these tables, or of their months, gave, and all that were thrown away."""
    given = re.finditer(rf" on (?:{'|'.join(tables)})\w*.*?\(actual[^)]*rows=([\d.]+) loops=(\d+)\)", plan)
    removed = re.finditer(r"Rows Removed by (?:Filter|Index Recheck): (\d+)", plan)
    return int(sum(float(scan[1]) * int(scan[2]) for scan in given) + sum(int(match[1]) for match in removed))
