"""What is told when something changed, and the words in which it travels between processes.

A notice names what decides who may hear of it, so that telling a thousand readers asks the database at most once.
"""

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from agent_console.domain.errors import ConsoleError
from agent_console.domain.ids import KINDS, AgentId, Id, TeamId, ThreadId
from agent_console.repository.port import Topic

# Many changes at once are told without names: the reader fetches its page again anyway.
NAMED_AT_MOST = 50

Entry = str | list[str | None]


class Notice(NamedTuple):
    """`thread_id` is the thread that it belongs to, `agent_id` the agent that asked for it; without an `id` it is
    about anything of its topic."""

    topic: Topic
    id: Id | None = None
    thread_id: ThreadId | None = None
    agent_id: AgentId | None = None

    @classmethod
    def of(
        cls, topic: Topic, row: Id, *, thread_id: ThreadId | None = None, agent_id: AgentId | None = None
    ) -> "Notice":
        return cls(topic, row, row if isinstance(row, ThreadId) else thread_id, agent_id)


def spoken(voice: str, team_id: TeamId, topic: Topic, notices: Collection[Notice]) -> str:
    """One payload for all notices of a topic; `voice` is the process that says it."""
    named = [_entry(notice) for notice in notices] if len(notices) <= NAMED_AT_MOST else None
    return json.dumps({"team": str(team_id), "topic": topic.value, "voice": voice, "ids": named})


def _entry(notice: Notice) -> Entry:
    row = str(notice.id)
    if notice.thread_id in (None, notice.id) and notice.agent_id is None:
        return row
    return [row, *(None if part is None else str(part) for part in (notice.thread_id, notice.agent_id))]


@dataclass(frozen=True)
class Heard:
    team_id: TeamId
    voice: str | None
    notices: tuple[Notice, ...]


def understood(payload: str) -> Heard | None:
    """None when it is no word of ours. Names that are no ids are left out: then it is about anything."""
    try:
        said = json.loads(payload)
        team_id, topic, voice = TeamId.parse(said["team"]), Topic(said["topic"]), said.get("voice")
        entries = said["ids"]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, ConsoleError):
        return None
    try:
        notices = tuple(_notice(topic, entry) for entry in entries[:NAMED_AT_MOST])
    except (ValueError, KeyError, TypeError, AttributeError, ConsoleError):
        notices = ()
    return Heard(team_id, voice if isinstance(voice, str) else None, notices or (Notice(topic),))


def _notice(topic: Topic, entry: Entry) -> Notice:
    if isinstance(entry, str):
        return Notice.of(topic, _id(entry))
    row, thread, agent = entry
    return Notice.of(
        topic,
        _id(row or ""),
        thread_id=None if thread is None else ThreadId.parse(thread),
        agent_id=None if agent is None else AgentId.parse(agent),
    )


def _id(text: str) -> Id:
    return KINDS[text.partition("_")[0]].parse(text)
