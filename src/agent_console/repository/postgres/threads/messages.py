"""Messages of a thread, read by keyset pages in the order of `seq`."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, case, literal, select, text, union_all

from agent_console.database.tables import agents, messages, users
from agent_console.domain.audit import SYSTEM
from agent_console.domain.errors import Invalid, NotFound
from agent_console.domain.ids import MessageId, TeamId, ThreadId
from agent_console.domain.messages import Message, MessageAsked, MessageQuery, SeqPage
from agent_console.repository.operations.messages import MESSAGES_GET, MESSAGES_LIST
from agent_console.repository.postgres.pages import no_such_page
from agent_console.repository.postgres.threads.access import thread_access
from agent_console.repository.postgres.work import Work, answers

MESSAGE_COLUMNS = tuple(messages.c[name] for name in Message.model_fields if name in messages.c)
AUTHOR = case(
    (messages.c.author_agent_id.is_not(None), agents.c.name),
    (messages.c.author_user_id.is_not(None), users.c.full_name),
    else_=literal(SYSTEM.label),
)

# By messages_thread_created_idx. Whoever holds the thread's lock takes the time with the seq, so both have one
# order.
FIRST_AT = text("""
    select seq
      from messages
     where team_id = :team_id and thread_id = :thread_id and created_at >= :at
     order by created_at, seq
     limit 1
""")


class Way(StrEnum):
    BEFORE = "before"
    AFTER = "after"
    AROUND = "around"


@dataclass(frozen=True)
class Position:
    """Where a page begins, and which way it goes; before nothing is the newest page."""

    way: Way
    seq: int | None = None


CURSOR = re.compile(r"(before|after):(\d{1,18})")


def parsed_cursor(after: str) -> Position:
    """The `next` of the page before, which knows its own way."""
    if (found := CURSOR.fullmatch(after)) is None:
        raise no_such_page()
    return Position(Way(found[1]), int(found[2]))


def cursor(way: Way, seq: int) -> str:
    return f"{way}:{seq}"


def with_authors(wanted: Select[Any]) -> Select[Any]:
    """Names by key; a deleted agent's row is still there."""
    by_user = and_(users.c.team_id == messages.c.team_id, users.c.id == messages.c.author_user_id)
    by_agent = and_(agents.c.team_id == messages.c.team_id, agents.c.id == messages.c.author_agent_id)
    return wanted.add_columns(AUTHOR.label("author")).select_from(
        messages.outerjoin(users, by_user).outerjoin(agents, by_agent)
    )


def page_of_messages(team_id: TeamId, query: MessageQuery, position: Position) -> Select[Any]:
    """In the order of messages_thread_seq_idx, or of messages_run_idx: one row more than asked for."""

    def part(limit: int, *where: ColumnElement[bool], forward: bool) -> Select[Any]:
        wanted = select(*MESSAGE_COLUMNS).where(
            messages.c.team_id == team_id, messages.c.thread_id == query.thread_id, *where
        )
        if query.run_id is not None:
            wanted = wanted.where(messages.c.run_id == query.run_id)
        order = messages.c.seq if forward else messages.c.seq.desc()
        return with_authors(wanted).order_by(order).limit(limit)

    limit = query.limit + 1
    match position:
        case Position(Way.AFTER, int(seq)):
            return part(limit, messages.c.seq > seq, forward=True)
        case Position(Way.AROUND, int(seq)):
            later = part(query.limit // 2, messages.c.seq > seq, forward=True).subquery()
            rest = part(limit, messages.c.seq <= seq, forward=False).subquery()
            both = union_all(select(later), select(rest)).subquery()
            return select(both).order_by(both.c.seq.desc()).limit(limit)
        case Position(seq=int(seq)):
            return part(limit, messages.c.seq < seq, forward=False)
        case _:
            return part(limit, forward=False)


async def _position(work: Work, query: MessageQuery) -> Position:
    given = {
        name: value
        for name in ("after", "before_seq", "after_seq", "around", "at_time")
        if (value := getattr(query, name)) is not None
    }
    if len(given) > 1:
        raise Invalid(
            "Only one position can be given.",
            hint=f"Choose one of: {', '.join(given)}.",
            details={"fields": [{"field": name, "problem": "more than one position"} for name in given]},
        )
    if query.after is not None:
        return parsed_cursor(query.after)
    if query.at_time is not None:
        facts = {"team_id": work.caller.team_id, "thread_id": query.thread_id, "at": query.at_time}
        seq = (await work.connection.execute(FIRST_AT, facts)).scalar()
        return Position(Way.BEFORE) if seq is None else Position(Way.AROUND, seq)
    if query.around is not None:
        return Position(Way.AROUND, query.around)
    if query.after_seq is not None:
        return Position(Way.AFTER, query.after_seq)
    return Position(Way.BEFORE, query.before_seq)


@answers(MESSAGES_LIST)
async def list_messages(work: Work, query: MessageQuery) -> SeqPage[Message]:
    await thread_access(work, query.thread_id)
    position = await _position(work, query)
    wanted = page_of_messages(work.caller.team_id, query, position)
    rows = (await work.connection.execute(wanted)).mappings().all()
    return seq_page(SeqPage[Message], rows, query.limit, position)


def seq_page(
    page: type[SeqPage[Any]], rows: Sequence[Mapping[str, Any]], limit: int, position: Position
) -> SeqPage[Any]:
    """One row more than the limit was asked for: it only says that there is a next page."""
    shown = [dict(row) for row in rows[:limit]]
    seqs = [row["seq"] for row in shown]
    more = len(rows) > limit
    forward = position.way is Way.AFTER
    going_on: dict[str, object] = {"next_after_seq": max(seqs, default=position.seq if forward else None)}
    if more and forward:
        going_on["next"] = cursor(Way.AFTER, max(seqs))
    elif more:
        going_on |= {"next": cursor(Way.BEFORE, min(seqs)), "next_before_seq": min(seqs)}
    return page.model_validate({"items": shown, **going_on})


@answers(MESSAGES_GET)
async def get_message(work: Work, asked: MessageAsked) -> Message:
    await thread_access(work, asked.thread_id)
    return await message_of(work, asked.thread_id, asked.message_id)


async def message_of(work: Work, thread_id: ThreadId, message_id: MessageId) -> Message:
    wanted = select(*MESSAGE_COLUMNS).where(
        messages.c.team_id == work.caller.team_id, messages.c.id == message_id, messages.c.thread_id == thread_id
    )
    found = (await work.connection.execute(with_authors(wanted))).mappings().first()
    if found is None:
        raise NotFound(
            f"There is no message {message_id} in thread {thread_id}.",
            hint="List them: agent-console messages list thr_…",
        )
    return Message.model_validate(dict(found))
