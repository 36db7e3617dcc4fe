"""Every pane: those with a look and a key of their own, and those derived from their operations."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from agent_console.repository.port import Topic
from agent_console.tui.panes import detail_screen
from agent_console.tui.panes.agents.lists import AGENTS
from agent_console.tui.panes.approvals.lists import APPROVALS, ApprovalsPane
from agent_console.tui.panes.audit.lists import AUDIT
from agent_console.tui.panes.audit.live import AuditPane
from agent_console.tui.panes.conversation.lists import THREADS
from agent_console.tui.panes.derived import derived_kind
from agent_console.tui.panes.jobs.lists import JOBS
from agent_console.tui.panes.jobs.upcoming import UPCOMING
from agent_console.tui.panes.list_kind import ListKind
from agent_console.tui.panes.overview.pane import OverviewPane
from agent_console.tui.panes.pane import Pane
from agent_console.tui.panes.queue_pane import pane_of
from agent_console.tui.panes.routes.pane import ROUTES, RoutesPane
from agent_console.tui.panes.runs.lists import RUNS
from agent_console.tui.panes.settings import SETTINGS
from agent_console.tui.panes.surroundings import Surroundings

# Imported with the panes, so that opening the first detail does not wait for it.
DETAIL = detail_screen.DetailScreen

WITH_A_KEY = (AGENTS, replace(JOBS, beside={"upcoming": UPCOMING}), THREADS)

MORE: dict[str, ListKind] = {
    "registration_tokens": derived_kind("registration_tokens", Topic.TOKENS),
    "worker_tokens": derived_kind("worker_tokens", Topic.TOKENS),
    "operator_tokens": derived_kind("operator_tokens", Topic.TOKENS),
    "connectors": derived_kind("connectors", Topic.CONNECTORS),
    "collections": derived_kind("collections", Topic.COLLECTIONS),
    "users": derived_kind("users", Topic.USERS),
    "settings": SETTINGS,
    "runs": RUNS,
}


KINDS: dict[str, ListKind] = {kind.name: kind for kind in (APPROVALS, *WITH_A_KEY, ROUTES, AUDIT)} | MORE
"""By noun, for whoever wants one thing of it and knows only its id."""


PANES: dict[str, Callable[[Surroundings], Pane]] = {
    "overview": OverviewPane,
    "approvals": ApprovalsPane,
    **{kind.name: partial(pane_of, kind) for kind in WITH_A_KEY},
    "routes": RoutesPane,
    "audit": AuditPane,
}
"""Those with a key. Each is made when somebody first goes there."""
