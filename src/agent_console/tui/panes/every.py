"""Every pane: those with a look and a key of their own, and those derived from their operations."""

from agent_console.domain.agents import Agent
from agent_console.domain.safe_text import safe_text
from agent_console.repository.port import Topic
from agent_console.tui.link import Clock, Link
from agent_console.tui.panes import detail_screen
from agent_console.tui.panes.agents import AGENTS
from agent_console.tui.panes.derived import derived_kind
from agent_console.tui.panes.jobs import JOBS
from agent_console.tui.panes.list_pane import ListPane

# Imported with the panes, so that opening the first detail does not wait for it.
DETAIL = detail_screen.DetailScreen

MORE: dict[str, Topic] = {
    "registration_tokens": Topic.TOKENS,
    "worker_tokens": Topic.TOKENS,
    "operator_tokens": Topic.TOKENS,
    "connectors": Topic.CONNECTORS,
    "collections": Topic.COLLECTIONS,
    "users": Topic.USERS,
}


def every_pane(link: Link, clock: Clock, *, read_only: bool) -> tuple[ListPane, ...]:
    return tuple(ListPane(kind, link, clock, read_only=read_only) for kind in (AGENTS, JOBS))


def sessions_pane(agent: Agent, link: Link, clock: Clock, *, read_only: bool) -> ListPane:
    """The sessions of one agent."""
    of_agent = derived_kind(
        "sessions", Topic.SESSIONS, of={"agent_id": str(agent.id)}, title=f"Sessions of {safe_text(agent.name)}"
    )
    return ListPane(of_agent, link, clock, read_only=read_only)


def further_pane(noun: str, link: Link, clock: Clock, *, read_only: bool) -> ListPane:
    return ListPane(derived_kind(noun, MORE[noun]), link, clock, read_only=read_only)
