"""The sentences that tell somebody at 03:00 why a job waits, and for whom."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from agent_console.domain.explaining import AbleAgent, AgentGroup, Standing
from agent_console.domain.kinds import CredentialLocation
from agent_console.domain.lane_words import NAME_SHOWN, listed
from agent_console.domain.lanes import Lane
from agent_console.domain.safe_text import shortened
from agent_console.domain.spans import span

NAMED_IN_SENTENCE = 3
NOTE_SHOWN = 100
MANY_LANES = 200
OLD_TRANSACTION_SECONDS = 60

_MANY_ARE = {
    Standing.DRAINED: "are drained",
    Standing.IN_ERROR: "report an error",
    Standing.OFFLINE: "are offline",
    Standing.NOT_ALLOWED: "may not take it",
    Standing.REVOKED: "are revoked",
}
_ONE_IS = _MANY_ARE | {
    Standing.DRAINED: "is drained",
    Standing.IN_ERROR: "reports an error",
    Standing.OFFLINE: "is offline",
    Standing.REVOKED: "is revoked",
}


def since(moment: datetime, now: datetime) -> str:
    """`since 02:14 UTC`, `since yesterday`, `since 3 March`: as exact as it matters."""
    moment, now = moment.astimezone(UTC), now.astimezone(UTC)
    if moment.date() == now.date():
        return f"since {moment:%H:%M} UTC"
    if moment.date() == (now - timedelta(days=1)).date():
        return "since yesterday"
    return f"since {moment.day} {moment:%B}" + (f" {moment.year}" if moment.year != now.year else "")


def coming(moment: datetime, now: datetime) -> str:
    """`at 06:00 UTC, in 3h`; another day is named."""
    moment, now = moment.astimezone(UTC), now.astimezone(UTC)
    day = "" if moment.date() == now.date() else f"{moment.day} {moment:%B} "
    return f"{'on' if day else 'at'} {day}{moment:%H:%M} UTC, in {span((moment - now).total_seconds())}"


def paused_words(mode: str, by: str | None, at: datetime, reason: str, now: datetime) -> str:
    who = "" if by is None else f" by {shortened(by, NAME_SHOWN)}"
    return f"The queue is paused ({mode}){who} {since(at, now)}: {shortened(reason, NOTE_SHOWN)}"


def old_transaction_words(seconds: float | None) -> str | None:
    """A warning once a transaction has been open for longer than a minute: it keeps claims from being cheap."""
    if seconds is None or seconds <= OLD_TRANSACTION_SECONDS:
        return None
    return (
        f"A transaction has been open in the database for {span(seconds)}: claims slow down until it ends."
        " Look for it in pg_stat_activity (a dump, a forgotten psql)."
    )


def many_lanes_words(lanes: int) -> str | None:
    """A warning where jobs ask for so many different things that finding what fits an agent takes long."""
    if lanes <= MANY_LANES:
        return None
    return (
        f"There are more than {MANY_LANES} lanes, one for each type, repository, connector and set of capabilities"
        " that jobs ever asked for: claims slow down. Let what differs from job to job stand in the payload."
    )


def group_of(groups: Sequence[AgentGroup], standing: Standing) -> AgentGroup | None:
    return next((group for group in groups if group.standing is standing), None)


def connector_words(lane: Lane, connector: str | None) -> str | None:
    """What the lane's connector lacks whoever comes, or None."""
    if lane.credentials is not CredentialLocation.PENDING:
        return None
    name = shortened(connector or str(lane.connector_id), NAME_SHOWN)
    return (
        f"Connector {name} has no credentials yet: nobody can take its jobs until somebody decides who keeps them."
    )


def need_words(lane: Lane, connector: str | None) -> str:
    """What an agent has to have, as the object of a sentence; empty when any agent will do."""
    needs = lane.required_capabilities
    if lane.credentials is CredentialLocation.AGENT:
        needs = (*needs, f"credentials for connector {shortened(connector or str(lane.connector_id), NAME_SHOWN)}")
    return listed(needs)


def nobody_words(
    lane: Lane,
    groups: Sequence[AgentGroup],
    missing: tuple[str, ...],
    connector: str | None,
    now: datetime,
    *,
    whole_fleet: bool = True,
) -> str:
    """Why no living agent could take a job of a lane that is bound to nobody. `missing` is had by no agent.

    Of a fleet that was not looked at as a whole only that much is said.
    """
    need = need_words(lane, connector)
    if not whole_fleet:
        found = f"; of these {_tail(groups, _have(need), now)}" if groups else ""
        return f"None of the agents that were looked at could take it{_who_has(need)}, and there are more{found}."
    if not groups:
        if missing:
            return f"No agent has {listed(missing)}."
        if not need:
            return "There is no agent who could take it."
        together = " together" if " and " in need else ""
        return f"No agent has {need}{together}."
    if [group.standing for group in groups] == [Standing.OFFLINE]:
        head = f"Nobody who is online has {need}" if need else "Nobody is online"
    else:
        head = f"Nobody who is online and open for work has {need}" if need else "Nobody online is open for work"
    return f"{head}; {_tail(groups, _have(need), now)}."


def _have(need: str) -> str:
    return "could take it" if not need else "have it" if " and " not in need else "have all of it"


def _who_has(need: str) -> str:
    return f" (it needs {need})" if need else ""


def _tail(groups: Sequence[AgentGroup], have: str, now: datetime) -> str:
    parts: list[str] = []
    for place, group in enumerate(groups):
        count = f"{group.count:,}" + (" or more" if group.capped else "")
        one = group.count == 1 and not group.capped
        verb = (_ONE_IS if one else _MANY_ARE)[group.standing]
        if place == 0:
            noun = "agent" if one else "agents"
            said = have.replace("have", "has", 1) if one else have
            parts.append(f"{count} {noun} {said} but {verb} ({_named(group, now)})")
        else:
            parts.append(f"{count} {verb} ({_named(group, now)})")
    return ", ".join(parts)


def _named(group: AgentGroup, now: datetime) -> str:
    shown = [_with_note(group.standing, agent, now) for agent in group.agents[:NAMED_IN_SENTENCE]]
    left = group.count - len(shown)
    if left > 0:
        shown.append(f"{left:,} more" if not group.capped else "and more")
    return ", ".join(shown)


def _with_note(standing: Standing, agent: AbleAgent, now: datetime) -> str:
    name = shortened(agent.name, NAME_SHOWN)
    if standing is Standing.OFFLINE:
        return f"{name} {'was never seen' if agent.since is None else since(agent.since, now)}"
    return f"{name}: {shortened(agent.note, NOTE_SHOWN)}" if agent.note else name


def busy_words(group: AgentGroup, now: datetime) -> str:
    if group.count == 1 and not group.capped:
        return f"The one agent who could take it is busy ({_named(group, now)})."
    count = f"{group.count:,}" + (" or more" if group.capped else "")
    return f"All {count} agents who could take it are busy ({_named(group, now)})."


def bound_words(agent: AbleAgent, standing: Standing, now: datetime) -> str | None:
    """What keeps the one agent a job is bound to from taking it; None when it is free."""
    name = shortened(agent.name, NAME_SHOWN)
    note = f": {shortened(agent.note, NOTE_SHOWN)}" if agent.note else ""
    match standing:
        case Standing.FREE:
            return None
        case Standing.OFFLINE:
            how = "was never seen" if agent.since is None else f"is offline {since(agent.since, now)}"
        case Standing.BUSY:
            how = f"is busy{note}"
        case Standing.REVOKED:
            how = "is revoked and will never take it; rebind it or cancel it"
        case _:
            how = f"{_ONE_IS[standing]}{note}"
    return f"It is bound to {name}, who {how}."


def turn_words(ahead: int, capped: bool, free: AgentGroup | None, now: datetime) -> str:
    """Nothing is in its way but its place in the line."""
    line = f"{ahead:,}{' or more are' if capped else ' is' if ahead == 1 else ' are'} ahead in its lane"
    line = line if ahead else "It is next in its lane"
    if free is None:
        return f"{line}."
    count = f"{free.count:,}" + (" or more" if free.capped else "")
    noun = "agent is" if free.count == 1 and not free.capped else "agents are"
    return f"{line}; {count} {noun} free to take it ({_named(free, now)})."
