"""One message of a thread: its words, and what came with it."""

import json
from datetime import UTC, datetime

from textual.content import Content

from agent_console.domain.errors import Invalid
from agent_console.domain.ids import MessageId
from agent_console.domain.messages import Message, MessageAsked, MessageQuery
from agent_console.domain.records import PAGE_LIMIT_MAX
from agent_console.domain.redact import redact_json
from agent_console.domain.runs import Run, RunAsked, ThreadRunQuery
from agent_console.domain.spans import ago
from agent_console.domain.threads import Thread
from agent_console.repository.operations.messages import MESSAGES_GET, MESSAGES_LIST
from agent_console.repository.operations.runs import RUNS_GET, RUNS_IN_THREAD
from agent_console.repository.port import Topic
from agent_console.tui.agent_text import agent_block, agent_text, system_text
from agent_console.tui.facts import Fact, FactSheet, Heading, Quote, SheetPart
from agent_console.tui.link import Link
from agent_console.tui.panes.conversation.lines import AUTHORS
from agent_console.tui.panes.list_kind import ListKind
from agent_console.tui.widgets.virtual_table_columns import Column

PAGES_LOOKED_AT = 20
TEXT_SHOWN = 8_000
LINES_SHOWN = 500
COLUMNS = (Column("seq", "Seq", 8), Column("author", "Author", 20), Column("words", "Words", None))


def message_cells(message: Message, _now: datetime) -> tuple[Content, ...]:
    return (
        system_text(str(message.seq)),
        agent_text(message.author, limit=60),
        agent_text(message.content, limit=200),
    )


def message_facts(message: Message, now: datetime) -> FactSheet:
    kind, style = AUTHORS[message.author_type]
    said_at = f"{message.created_at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC, {ago(message.created_at, now)} ago"
    facts: list[SheetPart] = [
        Heading(system_text(f"Message #{message.seq}", "bold")),
        Fact("author", system_text(f"{kind}  ", style) + agent_text(message.author, limit=255)),
        Fact("said", system_text(said_at)),
        Fact("id", system_text(str(message.id))),
    ]
    if message.broadcast:
        facts.append(Fact("asked to act", system_text("every agent of the thread")))
    elif message.to_agent_ids:
        facts.append(Fact("asked to act", system_text(", ".join(map(str, message.to_agent_ids)))))
    if message.intervention:
        facts.append(Fact("intervention", system_text("written while an agent was at work")))
    if message.run_id is not None:
        facts.append(Fact("run", system_text(str(message.run_id))))
    facts += [Heading(system_text("the words", "bold")), Quote(agent_block(_beginning(message.content)))]
    if message.payload:
        payload = json.dumps(redact_json(dict(message.payload)), indent=2, ensure_ascii=False)
        facts += [Heading(system_text("payload", "bold")), Quote(agent_block(_beginning(payload)))]
    return FactSheet(tuple(facts))


def _beginning(text: str) -> str:
    """A sheet is laid out every second, so what is in it has an end; the conversation unfolds all of it."""
    shown = "\n".join(text[:TEXT_SHOWN].split("\n", LINES_SHOWN)[:LINES_SHOWN])
    more = len(text) - len(shown)
    return f"{shown}\n… {more:,} characters more (agent-console messages get -o json)" if more else shown


def message_kind(thread: Thread) -> ListKind:
    return ListKind(
        name=f"messages-{thread.id}",
        title="Messages",
        topics=frozenset({Topic.MESSAGES}),
        columns=COLUMNS,
        newest_first=True,
        list_operation=MESSAGES_LIST,
        query=lambda group, limit, after: MessageQuery(thread_id=thread.id, limit=limit, after=after),
        get_operation=MESSAGES_GET,
        asked=lambda row_id: MessageAsked(thread_id=thread.id, message_id=MessageId.parse(row_id)),
        cells=message_cells,
        facts=message_facts,
        empty="Nothing was said yet.",
        jumps={"agents": lambda message: message.author_agent_id, "runs": lambda message: message.run_id},
    )


async def run_behind(link: Link, thread: Thread, message: Message | None) -> Run | None:
    """The run that a message came out of, or one that it asked for; of no message, the newest of the thread."""
    if message is None:
        newest = await link.call(RUNS_IN_THREAD, ThreadRunQuery(thread_id=thread.id, limit=1))
        return next(iter(newest.items), None)
    if message.run_id is not None:
        return await link.call(RUNS_GET, RunAsked(run_id=message.run_id))
    return await _asked_by(link, thread, message)


async def _asked_by(link: Link, thread: Thread, message: Message) -> Run | None:
    after: str | None = None
    for _ in range(PAGES_LOOKED_AT):
        query = ThreadRunQuery(thread_id=thread.id, limit=PAGE_LIMIT_MAX, after=after)
        page = await link.call(RUNS_IN_THREAD, query)
        for run in page.items:
            if run.input_message_id == message.id:
                return run
            if run.created_at < message.created_at:
                # No run is older than what it was asked with.
                return None
        if (after := page.next) is None:
            return None
    raise Invalid("It asked for none of the newest runs of this thread.", hint="v lists them all.")
