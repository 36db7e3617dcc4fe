"""Full-text search inside one thread."""

from uuid import UUID

from sqlalchemy import text

from agent_console.database.tables.conversations import SEARCHED
from agent_console.domain.audit import SYSTEM
from agent_console.domain.errors import Invalid
from agent_console.domain.ids import TeamId, ThreadId
from agent_console.domain.messages import MessageHit, MessageSearch, SeqPage
from agent_console.domain.snippets import searched_words, snippet_of
from agent_console.repository.operations.messages import MESSAGES_SEARCH
from agent_console.repository.postgres.pages import no_such_page
from agent_console.repository.postgres.threads.access import thread_access
from agent_console.repository.postgres.threads.messages import Position, Way, parsed_cursor, seq_page
from agent_console.repository.postgres.work import Work, answers

# Rare words are one look into messages_search_idx, for the thread and the words together; for common ones the
# thread is read backwards until there are enough. How often they are found elsewhere costs nothing.
FOUND = text(f"""
    select m.id, m.seq, m.author_type, m.content, m.created_at,
           coalesce(a.name, u.full_name, :system) as author
      from (select team_id, id, seq, author_type, author_user_id, author_agent_id, content, created_at
              from messages
             where ({SEARCHED}) @@ (cast(:thread as tsquery) && websearch_to_tsquery('simple', :words))
               and team_id = :team_id and thread_id = :thread_id
               and (cast(:before_seq as bigint) is null or seq < :before_seq)
             order by seq desc
             limit :limit) as m
      left join users u on u.team_id = m.team_id and u.id = m.author_user_id
      left join agents a on a.team_id = m.team_id and a.id = m.author_agent_id
     order by m.seq desc
""")  # noqa: S608


def lexeme_of(team_id: TeamId, thread_id: ThreadId) -> str:
    """The thread as messages_search_idx spells it."""
    return f"' {UUID(int=team_id.int)} {UUID(int=thread_id.int)}'"


# Which of the two it is depends on the words, so no plan may be kept for others.
PLANNED_FOR_THESE_WORDS = text("set local plan_cache_mode = force_custom_plan")


@answers(MESSAGES_SEARCH)
async def search_messages(work: Work, search: MessageSearch) -> SeqPage[MessageHit]:
    await thread_access(work, search.thread_id)
    words = searched_words(search.words)
    if not words:
        raise Invalid(
            "There is no word to look for.",
            hint="Name at least one word that the message has to hold.",
            details={"fields": [{"field": "words", "problem": "holds no word to look for"}]},
        )
    position = _position(search)
    facts = {
        "team_id": work.caller.team_id,
        "thread_id": search.thread_id,
        "thread": lexeme_of(work.caller.team_id, search.thread_id),
        "words": search.words,
        "before_seq": position.seq,
        "limit": search.limit + 1,
        "system": SYSTEM.label,
    }
    await work.connection.execute(PLANNED_FOR_THESE_WORDS)
    rows = [dict(row) for row in (await work.connection.execute(FOUND, facts)).mappings()]
    for row in rows:
        snippet = snippet_of(row.pop("content"), words)
        row |= {"snippet": snippet.text, "marks": snippet.marks}
    return seq_page(SeqPage[MessageHit], rows, search.limit, position)


def _position(search: MessageSearch) -> Position:
    if search.after is None:
        return Position(Way.BEFORE, search.before_seq)
    position = parsed_cursor(search.after)
    if position.way is not Way.BEFORE or search.before_seq is not None:
        raise no_such_page()
    return position
