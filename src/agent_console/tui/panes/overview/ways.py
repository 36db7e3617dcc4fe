"""Where what the overview tells can be mended."""

from dataclasses import replace

from agent_console.domain.jobs import JobQuery
from agent_console.repository.port import Topic
from agent_console.tui.panes.derived import derived_kind
from agent_console.tui.panes.jobs.lists import GROUPS, JOBS, STATES
from agent_console.tui.panes.list_kind import ListKind
from agent_console.tui.wanted import ListWanted, PaneWanted, ThingWanted, Wanted

OVERVIEW = "overview"
DUTIES = derived_kind("duties", Topic.EVERYTHING, title="Duties", above=OVERVIEW)


def jobs_in(group: str) -> ListKind:
    """Only the jobs of one group, with the way back to the overview."""
    return replace(
        JOBS,
        name=f"jobs-{group}",
        title="Jobs",
        groups=tuple(one for one in GROUPS if one.key == group),
        query=lambda _group, limit, after: JobQuery(status=STATES[group], limit=limit, after=after),
        above=OVERVIEW,
    )


def to_jobs(group: str) -> Wanted:
    return ListWanted(jobs_in(group))


def to_duties() -> Wanted:
    return ListWanted(DUTIES)


def to_pane(name: str) -> Wanted:
    return PaneWanted(name)


def to_thing(noun: str, thing_id: str) -> Wanted:
    return ThingWanted(noun, thing_id)
