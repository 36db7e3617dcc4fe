"""Rows that nobody told of, because a notice got lost: one look for all who follow a log, by index."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from agent_console.repository.logs import Log, LogName
from agent_console.repository.postgres.live.stream_reader import StreamReader
from agent_console.repository.postgres.queue.connections import QueueConnections

_FOLLOWED = """
    select a.place
      from unnest(%(teams)s::uuid[], %(things)s::uuid[], %(positions)s::bigint[])
           with ordinality as a (team_id, thing, position, place)
"""
_SEALED = f"""{_FOLLOWED}
      join audit_heads h on h.team_id = a.team_id and h.position > a.position
"""
BEHIND = {
    LogName.MESSAGES: f"""{_FOLLOWED}
     where exists (select from messages m
                    where m.team_id = a.team_id and m.thread_id = a.thing and m.seq > a.position)
    """,
    LogName.JOB_EVENTS: f"""{_FOLLOWED}
     where exists (select from job_events e
                    where e.team_id = a.team_id and e.job_id = a.thing and e.seq > a.position)
    """,
    LogName.APPROVALS: _SEALED,
    LogName.AUDIT: _SEALED,
}


@dataclass(eq=False, kw_only=True)
class LogReader(StreamReader):
    """Who follows a log, and how far they have come; None until they have begun."""

    log: Log[Any]
    position: int | None = None


async def behind(connections: QueueConnections, readers: Iterable[StreamReader]) -> list[LogReader]:
    """Those for whom there is more than they have read."""
    found: list[LogReader] = []
    following = [reader for reader in readers if isinstance(reader, LogReader) and reader.position is not None]
    for name, statement in BEHIND.items():
        if not (those := [reader for reader in following if reader.log.name is name]):
            continue
        facts = {
            "teams": [reader.team_id for reader in those],
            "things": [reader.log.thing for reader in those],
            "positions": [reader.position for reader in those],
        }
        rows = await connections.rows(statement, facts)
        found += [those[row.place - 1] for row in rows]
    return found
