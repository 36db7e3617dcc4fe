"""Taking hashes anew: a stretch of the chain is read once, in order, and every link and every act is hashed here.

The database only hands over what it keeps: whoever owns it could give its functions another meaning. It works
ahead while this end hashes, so a stretch costs what the slower of the two takes, and the memory of a few hundred
rows.
"""

import hashlib
import json
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from typing import LiteralString
from uuid import UUID

import psycopg
from psycopg.conninfo import make_conninfo
from psycopg.rows import TupleRow

from agent_console.domain.audit import Digits, metadata_form
from agent_console.domain.ids import TeamId
from agent_console.repository.operations.audit_trail import PROVE_SECONDS
from agent_console.repository.postgres.database import connection_settings

GENESIS = bytes(32)
LOWEST = -(2**63)
ROWS_AT_ONCE = 100

# The record that an act's hash is taken over, without its metadata: that is added here (see domain/audit.py). On a
# connection in UTF-8 a text is sent as convert_to(…, 'UTF8') writes it, for less.
ACT: LiteralString = """
    pg_catalog.record_send(row(
        a.form, a.team_id, a.id, a.created_at, textsend(a.actor_type), a.actor_user_id, a.actor_agent_id,
        textsend(a.actor_label), textsend(a.action), textsend(a.resource_type), textsend(a.resource_id),
        a.thread_id, a.run_id, textsend(a.decision), textsend(a.reason), a.ip, textsend(a.user_agent),
        null::bytea))
"""
# The seals by their primary key, for each the act, if it still has the number, the transaction and the hash that
# were sealed. One byte in its place says that it is gone with its month, which left a checkpoint.
LINKS: LiteralString = """
    select pg_catalog.record_send(row(s.team_id, s.position, s.audit_id, s.audit_created_at, s.audit_seq,
                                      s.audit_xid, s.event_hash, s.prev_hash, s.sealed_at))
               || s.hash
               || case when a.id is not null then @act
                       when exists (
                               select from audit_checkpoints c
                                where c.team_id = s.team_id
                                  and c.month = date_trunc('month', s.audit_created_at at time zone 'UTC')::date)
                       then decode('01', 'hex') else '' end,
           nullif(a.metadata, '{}')::text
      from audit_seals s
      left join audit_log a
             on a.team_id = s.team_id and a.id = s.audit_id and a.created_at = s.audit_created_at
            and a.seq = s.audit_seq and a.xid = s.audit_xid and a.event_hash = s.event_hash
     where s.team_id = %(team_id)s and s.position > %(after)s and s.position <= %(upto)s
     order by s.position
""".replace("@act", ACT)
# A stretch of the chain is a small part of the trail: each of its acts is looked up and no join reads the rest.
# Rows come as they are found; several workers would leave them to be sorted, all of them.
LOOKED_UP = (
    *("enable_hashjoin=off", "enable_mergejoin=off"),
    *("enable_sort=off", "max_parallel_workers_per_gather=0"),
)
# Acts behind the end of the chain, by audit_log_order_idx.
UNSEALED: LiteralString = """
    select a.id, a.seq, a.event_hash, nullif(a.metadata, '{}')::text, @act
      from audit_log a
     where a.team_id = %(team_id)s and (a.xid, a.seq) > (%(xid)s::text::xid8, %(seq)s) and a.seq > %(since_seq)s
     order by a.xid, a.seq
     limit %(at_most)s
""".replace("@act", ACT)
# Where in the record of a seal its values lie: each stands behind its type and its length.
POSITION, SEQ, XID = slice(36, 44), slice(92, 100), slice(108, 116)
EVENT_HASH, PREV_HASH = slice(124, 156), slice(164, 196)
RECORD_END, HASH_END = 212, 244
GONE = b"\x01"

_read_facts = json.JSONDecoder(parse_int=Digits, parse_float=Digits).raw_decode


@dataclass(frozen=True)
class Link:
    """The end of a stretch: its hash, and the act's own place in the order of transactions. Without an act it is
    the beginning of the chain, before all acts."""

    position: int
    hash: bytes
    xid: int = 0
    seq: int = LOWEST

    @property
    def place(self) -> tuple[int, int]:
        return self.xid, self.seq


@dataclass(frozen=True)
class Stretch:
    """`last` is the last link that holds; if `broken`, the next one does not. `acts` counts those not dropped."""

    last: Link
    acts: int
    broken: bool


def whole(act: bytes, facts: str) -> bytes:
    """The record of an act with its metadata, which are its last value; until here they were null."""
    return act[:-4] + _sized_form(facts)


@lru_cache(maxsize=4096)
def _sized_form(facts: str) -> bytes:
    """Many acts say the same. What no act may carry has no form, and so another hash; so has what lies too deep to
    be read."""
    try:
        metadata, _ = _read_facts(facts)
        form = metadata_form(metadata)
    except (TypeError, RecursionError):
        return b""
    return len(form).to_bytes(4, "big") + form


def prove(dsn: str, team_id: TeamId, first: Link, upto: int) -> Stretch:
    """Prove the links after `first`. For a thread of its own: it keeps one processor busy."""
    # Whoever closes the connection waits for rows that are still being read: reading ends first, whatever happens.
    with _connected(dsn) as connection, closing(_links(connection, team_id, first.position, upto)) as links:
        return _stretch(links, first, upto)


def _connected(dsn: str) -> "psycopg.Connection[TupleRow]":
    """A statement lasts as long as its rows are read: on a busy machine longer than others may."""
    settings = connection_settings(dsn)
    wanted = (f"statement_timeout={PROVE_SECONDS:g}s", *LOOKED_UP)
    settings["options"] += "".join(f" -c {setting}" for setting in wanted)
    return psycopg.connect(make_conninfo("", **settings), autocommit=True)


def _links(
    connection: "psycopg.Connection[TupleRow]", team_id: TeamId, after: int, upto: int
) -> Generator[TupleRow]:
    given = {"team_id": team_id, "after": after, "upto": upto}
    with connection.cursor(binary=True) as cursor:
        yield from cursor.stream(LINKS, given, size=ROWS_AT_ONCE)


def _stretch(links: Iterator[TupleRow], first: Link, upto: int) -> Stretch:
    """Written for speed: most of a proof's time is spent here."""
    sha256, position, prev, gone, last = hashlib.sha256, first.position, first.hash, 0, b""
    for body, facts in links:
        link, kept, act = body[:RECORD_END], body[RECORD_END:HASH_END], body[HASH_END:]
        if link[PREV_HASH] != prev or sha256(link).digest() != kept:
            break
        if link[POSITION] != (position + 1).to_bytes(8, "big"):
            break
        if sha256(act if facts is None else whole(act, facts)).digest() != link[EVENT_HASH]:
            if act != GONE:
                break
            gone += 1
        position += 1
        prev, last = kept, link
    if not last:
        return Stretch(first, 0, broken=position < upto)
    xid, seq = int.from_bytes(last[XID], "big"), int.from_bytes(last[SEQ], "big")
    acts = position - first.position - gone
    return Stretch(Link(position, prev, xid, seq), acts, broken=position < upto)


def changed_behind(
    dsn: str, team_id: TeamId, xid: int, seq: int, since_seq: int, at_most: int
) -> tuple[int, tuple[UUID, int] | None]:
    """How many acts behind the end of the chain hold, and the first that does not."""
    given = {"team_id": team_id, "xid": xid, "seq": seq, "since_seq": since_seq, "at_most": at_most}
    with (
        _connected(dsn) as connection,
        connection.cursor(binary=True) as cursor,
    ):
        held = 0
        for audit_id, number, event_hash, facts, act in cursor.stream(UNSEALED, given, size=ROWS_AT_ONCE):
            if hashlib.sha256(act if facts is None else whole(act, facts)).digest() != event_hash:
                return held, (audit_id, number)
            held += 1
        return held, None
