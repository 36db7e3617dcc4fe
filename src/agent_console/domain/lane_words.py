"""A lane as a person would say it."""

from agent_console.domain.lanes import Lane
from agent_console.domain.safe_text import shortened

NAME_SHOWN = 60
DEMANDS_SHOWN = 10


def listed(words: tuple[str, ...]) -> str:
    """`a`, `a and b`, `a, b and c`; a long list is cut and says so."""
    shown: list[str] = [shortened(word, NAME_SHOWN) for word in words[:DEMANDS_SHOWN]]
    if len(words) > DEMANDS_SHOWN:
        shown.append(f"{len(words) - DEMANDS_SHOWN} more")
    return " and ".join((", ".join(shown[:-1]), shown[-1])) if len(shown) > 1 else "".join(shown)


def lane_words(lane: Lane, bound_to: str | None, connector: str | None) -> str:
    """`bound_to` and `connector` are the names behind the lane's ids."""
    kind = "jobs of any type" if lane.job_type is None else f"jobs of type {shortened(lane.job_type, NAME_SHOWN)}"
    if lane.bound_agent_id is not None:
        whom = f"for {shortened(bound_to or str(lane.bound_agent_id), NAME_SHOWN)} alone"
    elif lane.required_capabilities:
        whom = f"for agents with {listed(lane.required_capabilities)}"
    else:
        whom = "for any agent"
    places = [] if lane.repository is None else [f"in {shortened(lane.repository, NAME_SHOWN)}"]
    if lane.connector_id is not None:
        places.append(f"through {shortened(connector or str(lane.connector_id), NAME_SHOWN)}")
    return ", ".join((f"{kind} {whom}", *places))
