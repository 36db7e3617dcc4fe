"""How the duties of this process go, and the row of each in the database that tells it to everybody."""

import asyncio
import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from agent_console.domain.redact import redact
from agent_console.repository.postgres.repository import Backend

# Some duties are done several times a second: what they did is gathered, and written once for so long.
WRITTEN_EVERY_SECONDS = 5.0
# After the first round of each: a console may not stay for long, and whoever has just started it wants to see that
# it does its duties.
FIRST_WRITTEN_SECONDS = 2.0
ERROR_LENGTH = 500

# By the database's clock: a process tells how long ago something was. One order for all, so that nobody waits for
# somebody who waits for him.
WRITE = """
    insert into duty_rounds as d (duty, done_at, done_by, seconds, rounds, rows, failures, failed_at, error)
    select r.duty, now() - r.done_ago * interval '1 second', case when r.done_ago is not null then %(by)s end,
           r.seconds, r.rounds, r.rows, r.failures, now() - r.failed_ago * interval '1 second', r.error
      from unnest(%(duties)s::text[], %(done_ago)s::float8[], %(seconds)s::float8[], %(rounds)s::bigint[],
                  %(rows)s::bigint[], %(failures)s::bigint[], %(failed_ago)s::float8[], %(errors)s::text[])
           as r (duty, done_ago, seconds, rounds, rows, failures, failed_ago, error)
     order by r.duty
        on conflict (duty) do update
       set done_at = greatest(d.done_at, excluded.done_at),
           done_by = case when excluded.done_at < d.done_at then d.done_by
                          else coalesce(excluded.done_by, d.done_by) end,
           seconds = case when excluded.done_at < d.done_at then d.seconds
                          else coalesce(excluded.seconds, d.seconds) end,
           failed_at = greatest(d.failed_at, excluded.failed_at),
           error = case when excluded.failed_at < d.failed_at then d.error
                        else coalesce(excluded.error, d.error) end,
           rounds = d.rounds + excluded.rounds,
           rows = d.rows + excluded.rows,
           failures = d.failures + excluded.failures
 returning d.duty
"""


@dataclass(frozen=True)
class Round:
    """One round of a duty. Without rows and without an error, another process was at it and nothing was done here;
    one that failed may have changed rows before it did."""

    ended_at: datetime
    seconds: float
    rows: int | None
    error: str | None


@dataclass
class DutyRecord:
    """How a duty goes in this process. What another process was at is no round of this one."""

    rounds: int = 0
    failures: int = 0
    rows: int = 0
    passed_over: int = 0
    last_done: Round | None = None
    last_failed: Round | None = None

    def add(self, ended: Round) -> None:
        if ended.error is not None:
            self.rounds += 1
            self.failures += 1
            self.last_failed = ended
        elif ended.rows is None:
            self.passed_over += 1
        else:
            self.rounds += 1
            self.rows += ended.rows
            self.last_done = ended

    def since(self, earlier: "DutyRecord") -> "DutyRecord":
        """What it has more than it had then."""
        return DutyRecord(
            rounds=self.rounds - earlier.rounds,
            failures=self.failures - earlier.failures,
            rows=self.rows - earlier.rows,
            last_done=None if self.last_done is earlier.last_done else self.last_done,
            last_failed=None if self.last_failed is earlier.last_failed else self.last_failed,
        )

    @property
    def last_error(self) -> str | None:
        return None if self.last_failed is None else self.last_failed.error


Records = Mapping[str, DutyRecord]


def this_process() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"


async def keep_written(backend: Backend, records: Records, stop: asyncio.Event) -> None:
    """Write down every few seconds what is new, and once more at the end."""
    written: Records = {name: DutyRecord() for name in records}
    seconds = FIRST_WRITTEN_SECONDS
    while True:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await stop.wait()
        ending, seconds = stop.is_set(), WRITTEN_EVERY_SECONDS
        # What could not be written now is written the next time; a duty that nobody can write down is late.
        with suppress(Exception):
            written = await write_down(backend, records, written)
        if ending:
            return


async def write_down(backend: Backend, records: Records, written: Records) -> Records:
    """Add to the database what the records have more than what was written. Tells what is written now."""
    now = {name: replace(record) for name, record in records.items()}
    more = {name: record.since(written[name]) for name, record in now.items()}
    new = {name: record for name, record in more.items() if record.rounds}
    if new:
        await backend.connections.rows(WRITE, _facts(new))
    return now


def _facts(new: Records) -> dict[str, object]:
    at, records = datetime.now(UTC), tuple(new.values())
    return {
        "by": this_process(),
        "duties": list(new),
        "done_ago": [_ago(record.last_done, at) for record in records],
        "seconds": [None if record.last_done is None else record.last_done.seconds for record in records],
        "rounds": [record.rounds for record in records],
        "rows": [record.rows for record in records],
        "failures": [record.failures for record in records],
        "failed_ago": [_ago(record.last_failed, at) for record in records],
        "errors": [None if record.last_error is None else _words(record.last_error) for record in records],
    }


def _ago(ended: Round | None, at: datetime) -> float | None:
    return None if ended is None else max(0.0, (at - ended.ended_at).total_seconds())


def _words(error: str) -> str:
    """For readers of every team: no secret, and no more than a sentence or two."""
    return redact(error.replace("\0", " ")[:ERROR_LENGTH])
