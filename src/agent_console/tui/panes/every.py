"""Every pane, in the order of its key."""

from agent_console.tui.link import Clock, Link
from agent_console.tui.panes import detail_screen
from agent_console.tui.panes.agents import AGENTS
from agent_console.tui.panes.jobs import JOBS
from agent_console.tui.panes.list_pane import ListPane

# Imported with the panes, so that opening the first detail does not wait for it.
DETAIL = detail_screen.DetailScreen


def every_pane(link: Link, clock: Clock) -> tuple[ListPane, ...]:
    return tuple(ListPane(kind, link, clock) for kind in (AGENTS, JOBS))
