"""A page of messages as JSON by one statement, which proves the reader's token and right to the thread as well.

It serves people who are let into the thread, with a token that was used a moment ago. Everybody else, and every
refusal, goes the whole way: there a token's use is written down, and an administrator's visit too.
"""

from functools import lru_cache
from typing import TYPE_CHECKING

from agent_console.domain.ids import ALPHABET
from agent_console.domain.messages import MessageQuery
from agent_console.repository.operations.messages import MESSAGES_LIST
from agent_console.repository.postgres.identify import ByOperatorToken
from agent_console.repository.postgres.passed_through import answers_as_json
from agent_console.repository.postgres.threads.messages import Position, Way, cursor, parsed_cursor

if TYPE_CHECKING:
    from agent_console.repository.postgres.repository import PostgresRepository

# To write ids as people see them is slow work in SQL. A mark that no JSON text contains stands before the prefix
# and the 32 hexadecimal digits of each.
MARK = "\x01"
PREFIX_END, ID_END = 3, 35
PAIRS = tuple(first + second for first in ALPHABET for second in ALPHABET)


def _id(prefix: str, column: str) -> str:
    return f"""'"' || chr(1) || '{prefix}' || replace({column}::text, '-', '') || '"'"""


def _id_or_null(prefix: str, column: str) -> str:
    return f"coalesce({_id(prefix, column)}, 'null')"


# In the order of the fields of Message, which a test compares.
ITEM = f"""
    '{{"id":' || {_id("msg", "m.id")} || ',"seq":' || m.seq || ',"thread_id":"' || %(shown_thread)s
    || '","author_type":"' || m.author_type || '","author_user_id":' || {_id_or_null("usr", "m.author_user_id")}
    || ',"author_agent_id":' || {_id_or_null("agt", "m.author_agent_id")}
    || ',"author":' || to_json(case when m.author_agent_id is not null then a.name
                                    when m.author_user_id is not null then u.full_name
                                    else 'agent-console' end)::text
    || ',"content":' || to_json(m.content)::text || ',"payload":' || m.payload::text
    || ',"run_id":' || {_id_or_null("run", "m.run_id")}
    || ',"to_agent_ids":' || m.to_agent_ids::text
    || ',"broadcast":' || m.broadcast || ',"intervention":' || m.intervention
    || ',"created_at":"' || to_char(m.created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS') || 'Z"}}'
"""


def _page(way: Way) -> str:
    """By messages_thread_seq_idx, one row more than asked for. No row at all says nothing about why."""
    where, order = ("m.seq > %(seq)s", "m.seq") if way is Way.AFTER else ("m.seq < %(seq)s", "m.seq desc")
    return f"""
    with reader as (
        select u.id
          from operator_tokens k
          join users u on u.team_id = k.team_id and u.id = k.user_id
         where k.team_id = %(team_id)s and k.id = %(token_id)s and k.token_hash = %(hash)s
           and k.revoked_at is null and (k.expires_at is null or k.expires_at > now())
           and k.last_used_at > now() - interval '1 minute'
           and u.kind = 'human' and u.is_active and u.last_seen_at > now() - interval '1 minute'
    ), let_in as (
        select t.id
          from reader r
          join threads t on t.team_id = %(team_id)s and t.id = %(thread_id)s
          left join thread_participants p
            on p.team_id = t.team_id and p.thread_id = t.id and p.participant_type = 'human' and p.user_id = r.id
         where p.can_read or t.visibility = 'shared'
    ), page as (
        select m.*, row_number() over (order by {order}) as place
          from let_in l
         cross join lateral (
               select * from messages m
                where m.team_id = %(team_id)s and m.thread_id = l.id and {where}
                order by {order}
                limit %(limit)s + 1) as m
    )
    select count(*) as found, min(m.seq) filter (where m.place <= %(limit)s) as first_seq,
           max(m.seq) filter (where m.place <= %(limit)s) as last_seq,
           string_agg({ITEM}, ',' order by m.place) filter (where m.place <= %(limit)s) as items
      from page m
      left join users u on u.team_id = %(team_id)s and u.id = m.author_user_id
      left join agents a on a.team_id = %(team_id)s and a.id = m.author_agent_id
    """  # noqa: S608


PAGES = {way: _page(way) for way in (Way.BEFORE, Way.AFTER)}
NEWEST = 2**63 - 1


def _plain_position(query: MessageQuery) -> Position | None:
    """Where a page begins that needs no further look; None for all others."""
    given = [name for name in ("after", "before_seq", "after_seq") if getattr(query, name) is not None]
    if len(given) > 1 or query.around is not None or query.at_time is not None or query.run_id is not None:
        return None
    if query.after is not None:
        return parsed_cursor(query.after)
    return (
        Position(Way.BEFORE, query.before_seq) if query.after_seq is None else Position(Way.AFTER, query.after_seq)
    )


@answers_as_json(MESSAGES_LIST)
async def messages_as_json(repository: "PostgresRepository", query: MessageQuery) -> bytes | None:
    position = _plain_position(query)
    if not isinstance(repository.identify, ByOperatorToken) or position is None:
        return None
    secret = repository.identify.secret
    facts = {
        "team_id": secret.team_id,
        "token_id": secret.owner,
        "hash": secret.hash,
        "thread_id": query.thread_id,
        "seq": NEWEST if position.seq is None else position.seq,
        "limit": query.limit,
        "shown_thread": str(query.thread_id),
    }
    (page,) = await repository.backend.connections.rows(PAGES[position.way], facts)
    if not page.found:
        return None
    more, forward = page.found > query.limit, position.way is Way.AFTER
    following = cursor(Way.AFTER, page.last_seq) if forward else cursor(Way.BEFORE, page.first_seq)
    next_page = f'"{following}"' if more else "null"
    going_on = (
        f'"next":{next_page},'
        f'"nextBeforeSeq":{page.first_seq if more and not forward else "null"},'
        f'"nextAfterSeq":{page.last_seq}'
    )
    return f'{{"items":[{_with_ids(page.items)}],{going_on}}}'.encode()


def _with_ids(marked: str) -> str:
    before, *parts = marked.split(MARK)
    return before + "".join(
        [shown_id(part[:PREFIX_END], part[PREFIX_END:ID_END]) + part[ID_END:] for part in parts]
    )


@lru_cache(maxsize=4096)
def shown_id(prefix: str, digits: str) -> str:
    """As Id writes it: 130 bits, the first two of them 0, in 26 characters."""
    number = int(digits, 16)
    return prefix + "_" + "".join([PAIRS[number >> shift & 1023] for shift in range(120, -1, -10)])
